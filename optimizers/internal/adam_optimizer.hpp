#pragma once

#include <string>

#include <tessera/optimizers/adam.hpp>
#include <tessera/optimizers/internal/moment_options.hpp>

namespace tessera::detail {

/// Visits the options that Adam and AdamW share.
template <class Options, class Visit>
void adam_fields(Options& o, const Visit& visit) {
  moment_fields(o, visit);
  visit("amsgrad", o.amsgrad);
  visit("epsilon_on_corrected_root", o.epsilon_on_corrected_root);
}

template <class Visit>
void fields(AdamOptions& o, const Visit& visit) {
  adam_fields(o, visit);
}

/// Creates the optimizer behind Adam and AdamW, with this class name.
OptimizerHandle make_adam(const std::string& class_name, const LearningRate& learning_rate,
                          const AdamOptions& options);

}  // namespace tessera::detail
