// The fit example of TensorFlow's guide "Distributed training with TensorFlow", under any
// synchronous strategy: a model compiled in its scope is trained on all of its devices.

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
};

int train(const Flags& flags) {
  const auto strategy = strategy::make_strategy(flags.strategy, flags.devices);
  if (is_first_process(strategy->mesh())) {
    std::cout << strategy->name() << ": " << strategy->num_replicas_in_sync() << " replicas in sync"
              << std::endl;
  }

  const Sequential model({Dense(1, {.kernel_regularizer = L2(1e-4)})});
  {
    const auto scope = strategy->scope();
    model.compile({.optimizer = "sgd", .loss = "mse"});
  }

  // Each batch is divided among the replicas.
  const TensorDataset dataset({.x = {at::ones({100, 1})}, .y = {at::ones({100, 1})}});
  model.fit(dataset, {.batch_size = 10, .epochs = 2});
  model.evaluate(dataset, {.batch_size = 10});

  const at::Tensor inputs = at::ones({100, 1}), targets = at::ones({100, 1});
  model.fit(inputs, targets, {.batch_size = 10, .epochs = 2});
  return 0;
}

int run(int argc, char** argv) {
  Flags flags;
  app::AppOptions options = app::AppOptions::bare(
      "distribute_fit", "The fit of TensorFlow's guide \"Distributed training\".");
  options.add({"strategy", "Training", "strategy of tf.distribute",
               app::choice(flags.strategy, tessera::strategy_names())});
  options.add({"devices", "Training", "virtual CPUs of this process, one replica each",
               app::integer(flags.devices, 1, app::max_devices)});
  return options.parse(argc, argv) ? train(flags) : 0;
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
