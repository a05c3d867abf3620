#pragma once

#include <string>

#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// Weights, batches and computations on one device (tf.distribute.OneDeviceStrategy).
class OneDeviceStrategy final : public Strategy {
 public:
  /// "/gpu:0", "cuda:1", "cpu:0". Throws MeshError for a device that there is not.
  explicit OneDeviceStrategy(const std::string& device);
};

}  // namespace tessera::strategy
