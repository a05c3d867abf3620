// The custom training loop of TensorFlow's guide "Distributed training with TensorFlow", under any
// synchronous strategy. Its model starts from the initial kernel of the guide's run, so that it
// prints the guide's 210 losses.

#include <iomanip>
#include <iostream>

#include <ATen/ATen.h>

#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/strategy/strategies.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/run_app.hpp"

namespace {

using namespace tessera;

struct Flags {
  std::string strategy = "mirrored";
  std::optional<int64_t> devices;
  int64_t batch_size = 5;
};

Sequential make_model() {
  return Sequential({Input({1}), Dense(1, {.kernel_initializer = Constant(-0.38224268),
                                           .kernel_regularizer = L2(1e-4)})});
}

int train(const Flags& flags) {
  const auto strategy = strategy::make_strategy(flags.strategy, flags.devices);

  // Functions that create variables are called in the strategy's scope.
  const Sequential model = strategy->run(make_model);
  const OptimizerHandle optimizer = SGD();

  const TensorDataset dataset({.x = {at::ones({1000, 1})}, .y = {at::ones({1000, 1})}});
  const auto dist_dataset =
      strategy->experimental_distribute_dataset(dataset, {.batch_size = flags.batch_size});

  // Reduction::none leaves the mean to compute_average_loss().
  const BinaryCrossentropy loss_object({.from_logits = true, .reduction = Reduction::none});
  const auto train_step = [&](const Batch& batch) {
    std::vector<DTensor> variables;
    for (const Variable& variable : model.trainable_weights()) {
      variables.push_back(variable.value());
    }
    GradientTape tape;
    const DTensor predictions = model(batch.x[0], {.training = true});
    const DTensor per_example_loss = (*loss_object)(batch.y[0], predictions);
    const DTensor loss = strategy::compute_average_loss(per_example_loss) +
                         strategy::scale_regularization_loss(model->losses());
    optimizer->apply(tape.gradient(loss, variables), model.trainable_weights());
    return loss;
  };
  const bool prints = is_first_process(strategy->mesh());
  const auto distributed_train_step = [&](const Batch& batch) {
    const DTensor loss = strategy->reduce("SUM", strategy->run(train_step, batch));
    if (prints) std::cout << std::setprecision(7) << loss.item<float>() << '\n';
  };

  for (const Batch& batch : dist_dataset) distributed_train_step(batch);

  const auto iterator = dist_dataset.iterate();
  for (int step = 0; step < 10; ++step) {
    if (const auto batch = iterator->next()) distributed_train_step(*batch);
  }
  return 0;
}

int run(int argc, char** argv) {
  Flags flags;
  app::AppOptions options = app::AppOptions::bare(
      "distribute_loop", "The training loop of TensorFlow's guide \"Distributed training\".");
  options.add({"strategy", "Training", "strategy of tf.distribute",
               app::choice(flags.strategy, tessera::strategy_names())});
  options.add({"devices", "Training", "virtual CPUs of this process, one replica each",
               app::integer(flags.devices, 1, app::max_devices)});
  options.add({"batch-size", "Training", "global batch size", app::integer(flags.batch_size, 1)});
  return options.parse(argc, argv) ? train(flags) : 0;
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
