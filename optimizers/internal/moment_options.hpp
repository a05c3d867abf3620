#pragma once

#include <string>

#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

/// What the options of Adam and its kin have in common: beta_1, beta_2 and epsilon. Throws
/// ConfigError naming class and option.
template <class Options>
void check_moments(const std::string& class_name, const Options& options) {
  check_decay(class_name, "beta_1", options.beta_1);
  check_decay(class_name, "beta_2", options.beta_2);
  check_not_negative(class_name, "epsilon", options.epsilon);
}

/// Into a configuration, and back.
template <class Options>
void put_moments(Json& config, const Options& options) {
  config["beta_1"] = options.beta_1;
  config["beta_2"] = options.beta_2;
  config["epsilon"] = options.epsilon;
}
template <class Options>
void take_moments(JsonObject& config, Options& options) {
  take(config, "beta_1", options.beta_1);
  take(config, "beta_2", options.beta_2);
  take(config, "epsilon", options.epsilon);
}

}  // namespace tessera
