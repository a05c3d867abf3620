#pragma once

#include <string>

#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// Stores weights and batches and computes on one device (tf.distribute.OneDeviceStrategy).
class OneDeviceStrategy final : public Strategy {
 public:
  /// Takes a name such as "/gpu:0", "cuda:1" or "cpu:0". Throws MeshError for a device that does
  /// not exist.
  explicit OneDeviceStrategy(const std::string& device);
};

}  // namespace tessera::strategy
