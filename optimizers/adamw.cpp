#include <tessera/optimizers/adamw.hpp>

#include <tessera/optimizers/adam.hpp>

namespace tessera {

AdamW::AdamW(double learning_rate, AdamWOptions options)
    : OptimizerRef(make_adam("AdamW", learning_rate,
                             {.beta_1 = options.beta_1,
                              .beta_2 = options.beta_2,
                              .epsilon = options.epsilon,
                              .amsgrad = options.amsgrad,
                              .weight_decay = options.weight_decay,
                              .epsilon_on_corrected_root = options.epsilon_on_corrected_root})) {}

}  // namespace tessera
