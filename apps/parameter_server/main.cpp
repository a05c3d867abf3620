// The custom training loop of TensorFlow's guide "Distributed training with TensorFlow" on
// parameter servers. All tasks of the cluster in TF_CONFIG run this program: parameter servers
// store the model, workers run steps asynchronously, and the coordinator (the task "chief")
// schedules them.

#include <cstdio>

#include <ATen/ATen.h>

#include <tessera/framework/parameter_server/cluster_coordinator.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>
#include <tessera/framework/strategy/strategies.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/run_app.hpp"

namespace {

using namespace tessera;

constexpr int num_epochs = 8, steps_per_epoch = 30;

/// Runs a training step of the guide; returns the loss of this worker's batch.
double train_step(const Sequential& model, OptimizerHandle optimizer, const Batch& batch) {
  const BinaryCrossentropy loss_object({.from_logits = true, .reduction = Reduction::none});
  std::vector<DTensor> values;
  for (const Variable& variable : model.trainable_weights()) values.push_back(variable.value());
  GradientTape tape;
  const DTensor predictions = model(batch.x[0], {.training = true});
  const DTensor per_example_loss = (*loss_object)(batch.y[0], predictions);
  const DTensor loss = strategy::compute_average_loss(per_example_loss) +
                       strategy::scale_regularization_loss(model->losses());
  // On a worker apply() sends the gradients to the parameter servers, which update the variables.
  optimizer->apply(tape.gradient(loss, values), model.trainable_weights());
  return loss.full().item<double>();
}

void coordinate(const strategy::ParameterServerStrategy& strategy) {
  strategy::ClusterCoordinator coordinator(strategy);
  const strategy::PerWorkerDataset data = coordinator.create_per_worker_dataset("train");
  for (int epoch = 1; epoch <= num_epochs; ++epoch) {
    std::vector<strategy::RemoteValue> losses;
    for (int step = 0; step < steps_per_epoch; ++step) {
      losses.push_back(coordinator.schedule("train_step", {}, {data}));
    }
    coordinator.join();
    std::printf("%d steps: loss %.4f\n", epoch * steps_per_epoch,
                losses.back().fetch().json.get<double>());
    std::fflush(stdout);
  }
  const strategy::ClusterCoordinator::Counts counts = coordinator.counts();
  std::printf("%lld steps, rescheduled: %lld, per worker:", static_cast<long long>(counts.done),
              static_cast<long long>(counts.rescheduled));
  for (const int64_t done : counts.done_by_worker) {
    std::printf(" %lld", static_cast<long long>(done));
  }
  std::printf("; updates per parameter server:");
  for (const int64_t updates : counts.updates) {
    std::printf(" %lld", static_cast<long long>(updates));
  }
  std::printf("\n");
}

int run(int argc, char** argv) {
  app::AppOptions options = app::AppOptions::bare(
      "parameter_server",
      "A custom training loop on parameter servers: one task of the cluster in TF_CONFIG.");
  if (!options.parse(argc, argv)) return 0;

  strategy::ParameterServerStrategy strategy;
  const auto scope = strategy.scope();
  const Sequential model({Input({1}), Dense(1, {.kernel_initializer = Constant(-0.38224268),
                                                .kernel_regularizer = L2(1e-4)})});
  const OptimizerHandle optimizer = SGD();
  strategy.place(model.weights(), optimizer);
  strategy.add_dataset(
      "train",
      [](const strategy::InputContext&) {
        return TensorDataset({.x = {at::ones({1000, 1})}, .y = {at::ones({1000, 1})}});
      },
      {.batch_size = 16});
  strategy.add_function("train_step", [&](strategy::WorkerContext& worker) {
    const std::optional<Batch> batch = worker.next();
    return strategy::ClosureValue{.json = train_step(model, optimizer, *batch)};
  });
  if (!strategy.is_coordinator()) return strategy.join();
  coordinate(strategy);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
