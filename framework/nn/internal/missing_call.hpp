#pragma once

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

/// Thrown by a call of a layer that defines neither call() nor call_all(). A model without them can
/// be built by its train_step().
class MissingCall : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

}  // namespace tessera::detail
