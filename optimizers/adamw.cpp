#include <tessera/optimizers/adamw.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/internal/adam_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AdamWOptions& o, const Visit& visit) {
  adam_fields(o, visit);
}

namespace {

const Registered registered_adamw(optimizer_factories(), {"AdamW"},
                                  optimizer_of<AdamW, AdamWOptions>);

OptimizerHandle make(const LearningRate& learning_rate, const AdamWOptions& options) {
  if (!options.weight_decay) {
    throw ConfigError("AdamW", "weight_decay is a number", "none", "use Adam, or 0.004");
  }
  AdamOptions adam;
  adam.beta_1 = options.beta_1;
  adam.beta_2 = options.beta_2;
  adam.epsilon = options.epsilon;
  adam.amsgrad = options.amsgrad;
  adam.epsilon_on_corrected_root = options.epsilon_on_corrected_root;
  copy_base_options(options, adam);
  return make_adam("AdamW", learning_rate, adam);
}

}  // namespace

AdamW::AdamW(LearningRate learning_rate, AdamWOptions options)
    : OptimizerHandle(make(learning_rate, options)) {}

}  // namespace tessera
