#include <tessera/optimizers/adamw.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/adam.hpp>
#include <tessera/optimizers/internal/config_reading.hpp>

namespace tessera {
namespace {

/// The members that both options structs have.
template <class From, class To>
void copy_adam_options(const From& from, To& to) {
  to.beta_1 = from.beta_1;
  to.beta_2 = from.beta_2;
  to.epsilon = from.epsilon;
  to.amsgrad = from.amsgrad;
  to.epsilon_on_corrected_root = from.epsilon_on_corrected_root;
  copy_base_options(from, to);
}

OptimizerHandle make(const LearningRate& learning_rate, const AdamWOptions& options) {
  if (!options.weight_decay) {
    throw ConfigError("AdamW", "weight_decay is a number", "none", "use Adam, or 0.004");
  }
  AdamOptions adam;
  copy_adam_options(options, adam);
  return make_adam("AdamW", learning_rate, adam);
}

}  // namespace

AdamW::AdamW(LearningRate learning_rate, AdamWOptions options)
    : OptimizerHandle(make(learning_rate, options)) {}

AdamW AdamW::from_config(JsonObject& config) {
  const LearningRate rate = take_learning_rate(config, 0.001);
  AdamWOptions options;
  AdamOptions adam;
  copy_adam_options(options, adam);
  take_adam_options(config, adam);
  copy_adam_options(adam, options);
  return AdamW(rate, options);
}

}  // namespace tessera
