#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/data/internal/batch_reader.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/remote_steps.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_fit.hpp"

namespace tessera::test {

using namespace detail;

/// Fits whose steps another model executes, compared with ordinary ones.
namespace remote_fit {

using namespace small_fit;

/// The complete state of a training run.
struct SavedRun {
  FitPosition position;
  Json totals;
  History history;
  std::vector<at::Tensor> weights, slots;
  int64_t optimizer_steps = 0;
};

inline SavedRun saved_run(Model& model) {
  SavedRun saved{
      model.fit_position(),      model.metric_totals(), model.history(), model.get_weights(), {},
      model.optimizer()->steps()};
  for (at::Tensor& weight : saved.weights) weight = weight.clone();
  for (const Variable& slot : model.optimizer()->variables()) {
    saved.slots.push_back(slot.value().full().clone());
  }
  return saved;
}

inline void restore_run(const SavedRun& saved, Model& model) {
  model.set_weights(saved.weights);
  std::vector<Variable> slots = model.optimizer()->variables();
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i].assign(pack(saved.slots[i].clone(), slots[i].layout()));
  }
  model.optimizer()->set_steps(saved.optimizer_steps);
}

inline Sequential compiled_model() {
  const Sequential model = small_model();
  model.compile(small_compile(small_layouts("data", create_mesh({{"batch", 1}}))));
  return model;
}

/// Executes the steps with another model, in order, and reports `at_a_time` of them at once, the
/// last one first.
class FakeSteps : public RemoteSteps {
 public:
  std::optional<History> work_for_leader(Trainer&, const FitData&, const FitOptions&) override {
    return served;
  }
  void send(Trainer& trainer, const FitData& data, const FitOptions& options) override {
    // Creates the slots.
    worker.train_on_batch(small_data(1).get(std::vector<int64_t>{0}));
    restore_run(saved_run(trainer.model()), worker.model());
    train.emplace(data.train, training_batches(options));
    if (data.validation) validation.emplace(data.validation, validation_batches(options));
  }
  int64_t run_steps(const StepRange& range,
                    const std::function<bool(int64_t, const StepTotals&)>& done) override {
    ranges.push_back(range);
    int64_t begun = range.first;
    for (bool more = true; more && begun < range.last;) {
      std::vector<std::pair<int64_t, StepTotals>> window;
      for (int64_t i = 0; more && i < at_a_time && begun < range.last; ++i) {
        const std::optional<StepTotals> totals = make(range, begun);
        more = totals.has_value();  // or the data have ended
        if (totals) window.emplace_back(begun++, *totals);
      }
      std::reverse(window.begin(), window.end());
      for (const auto& [step, totals] : window) more = done(step, totals) && more;
    }
    return begun - range.first;
  }
  void fetch(Trainer& trainer) override { restore_run(saved_run(worker.model()), trainer.model()); }
  void end(const History& history) override { final_history = history; }
  void fail(const std::string& what) noexcept override { failure = what; }

  Sequential worker = compiled_model();
  int64_t at_a_time = 1;
  std::optional<History> served, final_history;
  std::string failure;
  std::vector<StepRange> ranges;

 private:
  std::optional<StepTotals> make(const StepRange& range, int64_t step) {
    const bool trains = range.phase == Phase::train;
    const auto batch = (trains ? *train : *validation).read(range.pass, range.offset + step);
    if (!batch) return std::nullopt;
    worker->reset_metrics();
    trains ? worker->train_on_batch(*batch) : worker->test_on_batch(*batch);
    const Json all = worker->metric_totals();
    StepTotals totals{.loss = all["loss"][0], .rows = all["loss"][1]};
    for (const auto& [name, metric] : all["metrics"].items()) {
      totals.metrics.push_back({name, metric["totals"], metric["value"]});
    }
    return totals;
  }

  std::optional<BatchReader> train, validation;
};

struct Outcome {
  History history;
  std::vector<at::Tensor> weights;
};

/// Trains the small model, locally if `remote` is null.
inline Outcome trained(const std::shared_ptr<StepExecutor>& remote,
                       std::vector<CallbackHandle> callbacks = {}, int64_t data_rows = rows) {
  const StepExecutorScope scope(remote);
  const Sequential model = compiled_model();
  Outcome outcome;
  outcome.history = model.fit(small_data(data_rows), options_of(std::move(callbacks)));
  outcome.weights = full_weights(model);
  return outcome;
}

inline void check_equal(const Outcome& outcome, const Outcome& expected) {
  const auto list = [](const std::vector<double>& all) { return at::tensor(all, at::kDouble); };
  REQUIRE(outcome.history.history.size() == expected.history.history.size());
  CHECK(difference(list(outcome.history.steps), list(expected.history.steps), 1e-12) == "");
  for (const auto& [name, course] : expected.history.history) {
    CAPTURE(name);
    CHECK(difference(list(outcome.history.at(name)), list(course), 1e-12) == "");
  }
  CHECK(outcome.history.epoch == expected.history.epoch);
  CHECK(outcome.history.data == expected.history.data);
  REQUIRE(outcome.weights.size() == expected.weights.size());
  for (size_t i = 0; i < expected.weights.size(); ++i) {
    CHECK(at::equal(outcome.weights[i], expected.weights[i]));
  }
}

/// Records the batches and does not need weights.
struct Listener : Callback, OccasionalWeightReader {
  void on_train_batch_begin(int64_t batch) override { begun.push_back(batch); }
  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    ended.push_back(batch);
    losses.push_back(find_value(logs, "loss").value());
    if (stop_after == static_cast<int64_t>(ended.size())) model().set_stop_training(true);
  }
  void on_test_batch_end(int64_t batch, const Logs&) override { tested.push_back(batch); }
  void on_epoch_end(int64_t epoch, Logs&) override { epoch_ends.push_back(epoch); }
  std::optional<int64_t> batches_to_weights() override { return std::nullopt; }
  std::vector<int64_t> begun, ended, tested, epoch_ends;
  std::vector<double> losses;
  int64_t stop_after = 0;
};

}  // namespace remote_fit
}  // namespace tessera::test
