#pragma once

#include <string>

#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera::detail {

/// Checks beta_1, beta_2 and epsilon, which Adam and its variants share. Throws ConfigError naming
/// class and option.
template <class Options>
void check_moments(const std::string& class_name, const Options& options) {
  check_decay(class_name, "beta_1", options.beta_1);
  check_decay(class_name, "beta_2", options.beta_2);
  check_not_negative(class_name, "epsilon", options.epsilon);
}

/// Visits beta_1, beta_2 and epsilon.
template <class Options, class Visit>
void moment_fields(Options& o, const Visit& visit) {
  visit("beta_1", o.beta_1);
  visit("beta_2", o.beta_2);
  visit("epsilon", o.epsilon);
}

}  // namespace tessera::detail
