#pragma once

#include <string>

#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// tf.distribute.TPUStrategy, which is not supported: libtorch without XLA has no TPU devices.
class TPUStrategy final : public Strategy {
 public:
  /// Always throws ConfigError.
  explicit TPUStrategy(const std::string& tpu = "");
};

}  // namespace tessera::strategy
