#pragma once

#include <string>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

/// Throws ConfigError naming class and option unless the value is at least 0.
inline void check_not_negative(const std::string& class_name, const char* what, double value) {
  if (value >= 0) return;
  throw ConfigError(class_name, str(what, " is not negative"), str(value), "use Keras' default");
}

/// Throws ConfigError naming class and option unless the value is in [0, 1).
inline void check_decay(const std::string& class_name, const char* what, double value) {
  if (value >= 0 && value < 1) return;
  throw ConfigError(class_name, str(what, " lies in [0, 1)"), str(value), "use Keras' default");
}

/// Throws ConfigError naming class and option unless the value is in [0, 1].
inline void check_fraction(const std::string& class_name, const char* what, double value) {
  if (value >= 0 && value <= 1) return;
  throw ConfigError(class_name, str(what, " lies in [0, 1]"), str(value), "use Keras' default");
}

}  // namespace tessera::detail
