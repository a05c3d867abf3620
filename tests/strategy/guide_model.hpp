#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/strategy/strategies.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

/// A strategy on any mesh.
class MeshStrategy final : public strategy::Strategy {
 public:
  explicit MeshStrategy(const Mesh& mesh) : Strategy("MeshStrategy", mesh) {}
};

/// The model of the tf.distribute guide, with the kernel drawn in the guide's run.
inline Sequential guide_model() {
  return Sequential({Input({1}), Dense(1, {.kernel_initializer = Constant(-0.38224268),
                                           .kernel_regularizer = L2(1e-4)})});
}

inline TensorDataset guide_data() {
  return TensorDataset({.x = {at::ones({1000, 1})}, .y = {at::ones({1000, 1})}});
}

/// One step of the guide's custom loop; returns the loss, not yet reduced over replicas.
inline DTensor guide_step(const Sequential& model, const OptimizerHandle& optimizer,
                          const Batch& batch) {
  const BinaryCrossentropy loss_object({.from_logits = true, .reduction = Reduction::none});
  std::vector<DTensor> values;
  for (const Variable& variable : model.trainable_weights()) values.push_back(variable.value());
  GradientTape tape;
  const DTensor losses = (*loss_object)(batch.y[0], model(batch.x[0], {.training = true}));
  const DTensor loss =
      strategy::compute_average_loss(losses) + strategy::scale_regularization_loss(model->losses());
  optimizer->apply(tape.gradient(loss, values), model.trainable_weights());
  return loss;
}

/// Returns the losses of the guide's custom loop: global batches of 16, the last of each epoch of 8
/// rows.
inline std::vector<double> loop_losses(const strategy::Strategy& strategy, size_t steps) {
  const Sequential model = strategy.run(guide_model);
  const OptimizerHandle optimizer = SGD();
  const auto data = strategy.experimental_distribute_dataset(guide_data(), {.batch_size = 16});
  std::vector<double> losses;
  while (losses.size() < steps) {
    for (const Batch& batch : data) {
      const DTensor loss = strategy.run([&] { return guide_step(model, optimizer, batch); });
      losses.push_back(strategy.reduce("SUM", loss).item());
    }
  }
  losses.resize(steps);
  return losses;
}

/// Returns the losses of the same steps by fit.
inline std::vector<double> fit_losses(const strategy::Strategy& strategy, size_t steps) {
  const Sequential model = strategy.run([] {
    Sequential made = guide_model();
    made.compile({.optimizer = "sgd", .loss = BinaryCrossentropy({.from_logits = true})});
    return made;
  });
  std::vector<double> losses;
  double sum = 0;
  // Logs hold the mean over the epoch's rows so far.
  const LambdaCallback callback({.on_train_batch_end = [&](int64_t batch, const Logs& logs) {
    if (batch == 0) sum = 0;
    const double rows = batch < 62 ? 16 : 8;
    const double now = *find_value(logs, "loss") * (static_cast<double>(batch) * 16 + rows);
    losses.push_back((now - sum) / rows);
    sum = now;
  }});
  model.fit(guide_data(), {.batch_size = 16,
                           .epochs = static_cast<int64_t>(steps / 63) + 1,
                           .verbose = 0,
                           .callbacks = {callback}});
  losses.resize(steps);
  return losses;
}

/// Empty if the losses are the guide's within 1e-5, else the first that is not.
inline std::string differs_from_guide(const std::vector<double>& losses) {
  const Json golden = read_json_file(golden_path("distribute_guide.json").string());
  const auto expected = golden.at("losses").get<std::vector<double>>();
  if (losses.size() != expected.size()) return str(losses.size(), " losses");
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(losses[i] - expected[i]) <= 1e-5) continue;
    return str("step ", i, ": ", losses[i], " is not ", expected[i]);
  }
  return "";
}

}  // namespace tessera::test
