#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "tests/support/small_model.hpp"

namespace tessera::test {

using namespace detail;

/// Steps per epoch of train().
inline constexpr int per_epoch = 7;

/// Ends training after `steps` steps, like a crash, a signal or a request to stop.
class Interruption final : public Callback {
 public:
  enum class Kind : uint8_t { error, kill, stop };
  explicit Interruption(int64_t steps, Kind kind = Kind::error) : left_(steps), kind_(kind) {}
  void on_train_batch_end(int64_t, const Logs&) override {
    if (--left_ != 0) return;
    if (kind_ == Kind::kill) std::raise(SIGKILL);
    if (kind_ == Kind::error) throw StateError("Interruption", "power", "none", "");
    model().set_stop_training(true);
  }

 private:
  int64_t left_;
  Kind kind_;
};

/// Counts the steps of a run.
class StepCounter final : public Callback {
 public:
  void on_train_batch_end(int64_t, const Logs&) override { ++steps; }
  bool wants_batch_logs(int64_t) override { return false; }
  int64_t steps = 0;
};

/// Returns a model with dropout, compiled with this optimizer as serialized by Keras.
inline ModelHandle dropout_model(const Json& optimizer, const LayoutMap& layouts) {
  const Sequential model(
      {Dense(14, {.activation = "relu", .name = "hidden_1"}), Dropout(0.3, {.name = "drop"}),
       Dense(9, {.activation = "relu", .name = "hidden_2"}), Dense(5, {.name = "logits"})});
  model.compile(
      {.optimizer = optimizer_from_config(optimizer),
       .loss = SparseCategoricalCrossentropy({.from_logits = true}),
       .metrics = {"accuracy", metrics::SparseCategoricalCrossentropy({.from_logits = true})},
       .layouts = layouts});
  return model;
}

inline Json optimizer_named(const std::string& name) {
  return optimizer_to_config(make_optimizer(name));
}

/// Returns the optimizer with every option that adds state between steps.
inline Json with_everything(Json optimizer) {
  Json& config = optimizer["config"];
  if (config.contains("momentum")) config["momentum"] = 0.9;
  config["use_ema"] = true;
  config["ema_overwrite_frequency"] = 2;
  config["gradient_accumulation_steps"] = 3;
  config["learning_rate"] = {
      {"class_name", "ExponentialDecay"},
      {"config", {{"initial_learning_rate", 0.01}, {"decay_steps", 4}, {"decay_rate", 0.8}}}};
  return optimizer;
}

inline LayoutMap some_layouts() {
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}));
  layouts.add({.match = "hidden_1/kernel",
               .layout = {unsharded, "model"},
               .slots = LayoutSpec{"batch", "model"}});
  return layouts;
}

/// The history of a run including the runs before it, and the number of its own steps.
struct Run {
  History history;
  int64_t steps = 0;
};

inline Run train(const ModelHandle& model, std::vector<CallbackHandle> callbacks,
                 int64_t epochs = 3) {
  const auto counter = std::make_shared<StepCounter>();
  callbacks.emplace_back(counter);
  Run run;
  run.history = model.fit(small_data(8 * per_epoch), {.batch_size = 8,
                                                      .epochs = epochs,
                                                      .verbose = 0,
                                                      .callbacks = callbacks,
                                                      .validation_data = small_data(20, 7)});
  run.steps = counter->steps;
  return run;
}

/// Names the results in which a resumed run differs from an uninterrupted one.
inline std::string differs(const Run& uninterrupted, const Run& resumed) {
  std::string names;
  const History &one = uninterrupted.history, &other = resumed.history;
  if (one.steps != other.steps) names += "steps ";
  if (one.epoch != other.epoch) names += "epoch ";
  for (const auto& [name, course] : one.history) {
    if (other.at(name) != course) names += name + " ";
  }
  return names;
}

}  // namespace tessera::test
