#include <signal.h>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/training/history.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/small_model.hpp"

namespace resume_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t rows = 70, batch_size = 16, steps = 5, epochs = 3;

/// The state that a checkpoint saves to resume a run.
struct SavedRun {
  FitPosition position;
  std::string totals;
  History history;
  std::vector<at::Tensor> weights, slots;
  int64_t optimizer_steps = 0;
};

/// Saves the run after a step of an epoch; step -1: at the epoch's end.
struct Keep : Callback {
  Keep(int64_t at_epoch, int64_t at_step) : epoch(at_epoch), step(at_step) {}
  void on_epoch_begin(int64_t number) override { now = number; }
  void on_train_batch_end(int64_t batch, const Logs&) override {
    if (now == epoch && batch == step) keep();
  }
  void on_epoch_end(int64_t number, Logs&) override {
    if (number == epoch && step < 0) keep();
  }
  void keep() {
    Model& run = model();
    saved = {
        run.fit_position(),      run.metric_totals().dump(), run.history(), run.get_weights(), {},
        run.optimizer()->steps()};
    for (const Variable& slot : run.optimizer()->variables()) {
      saved.slots.push_back(slot.value().full().clone());
    }
  }
  int64_t epoch, step, now = 0;
  SavedRun saved;
};

struct GoOn : Callback {
  explicit GoOn(SavedRun from) : saved(std::move(from)) {}
  void on_train_begin() override {
    Model& run = model();
    run.set_weights(saved.weights);
    const std::vector<Variable> slots = run.optimizer()->variables();
    for (size_t i = 0; i < slots.size(); ++i) {
      Variable slot = slots[i];
      slot.assign(pack(saved.slots[i], slot.layout()));
    }
    run.optimizer()->set_steps(saved.optimizer_steps);
    run.set_fit_position(saved.position);
    run.restore_metric_totals(Json::parse(saved.totals));
    run.set_history(saved.history);
  }
  SavedRun saved;
};

struct Outcome {
  History history;
  std::vector<at::Tensor> weights;
};

Outcome trained(const CallbackHandle& callback) {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts("model", mesh)));
  const TensorDataset data = test::small_data(rows);
  Outcome outcome;
  outcome.history = model.fit(data, {.batch_size = batch_size,
                                     .epochs = epochs,
                                     .verbose = 0,
                                     .callbacks = {callback},
                                     .validation_data = test::small_data(20, 2)});
  outcome.weights = test::full_weights(model);
  return outcome;
}

}  // namespace

TEST_CASE("a run resumes where it was saved, bit for bit", "[resume]") {
  const int64_t step = GENERATE(0, 2, 3, steps - 1, -1);
  INFO("saved after step " << step);
  const auto keep = std::make_shared<Keep>(1, step);
  const Outcome uninterrupted = trained(keep);
  REQUIRE(keep->saved.weights.size() == uninterrupted.weights.size());
  const Outcome resumed = trained(GoOn(keep->saved));

  CHECK(resumed.history.steps == uninterrupted.history.steps);
  CHECK(resumed.history.epoch == uninterrupted.history.epoch);
  CHECK(resumed.history.to_json() == uninterrupted.history.to_json());
  for (size_t i = 0; i < uninterrupted.weights.size(); ++i) {
    CHECK(at::equal(resumed.weights[i], uninterrupted.weights[i]));
  }
}

namespace {

/// Ends the run by a signal, in training or in validation, and saves it then.
struct Signalled : Keep {
  Signalled(int64_t at_epoch, int64_t at_step, bool testing)
      : Keep(at_epoch, testing ? steps : at_step), tests(testing), last(at_step) {}
  void on_train_batch_end(int64_t batch, const Logs&) override {
    if (!tests && now == epoch && batch == last) ::raise(SIGTERM);
  }
  void on_test_batch_end(int64_t batch, const Logs&) override {
    if (tests && now == epoch && batch == last) ::raise(SIGTERM);
  }
  void on_epoch_end(int64_t, Logs&) override {}
  void on_interrupt() override { keep(); }
  bool tests;
  int64_t last;
};

}  // namespace

TEST_CASE("a run that a signal ends resumes bit for bit, in validation, too", "[resume]") {
  const auto [testing, step] = GENERATE(
      table<bool, int64_t>({{false, 0}, {false, 2}, {false, steps - 1}, {true, 0}, {true, 1}}));
  CAPTURE(testing, step);
  const Outcome uninterrupted = trained(LambdaCallback({}));
  const StopSignals signals;
  const auto signalled = std::make_shared<Signalled>(1, step, testing);
  CHECK_THROWS_AS(trained(signalled), Interrupted);
  clear_stop_signal();
  REQUIRE(signalled->saved.weights.size() == uninterrupted.weights.size());
  CHECK(signalled->saved.position.epoch == 1);
  CHECK(signalled->saved.position.step == (testing ? steps : step + 1));
  const Outcome resumed = trained(GoOn(signalled->saved));
  CHECK(resumed.history.steps == uninterrupted.history.steps);
  CHECK(resumed.history.to_json() == uninterrupted.history.to_json());
  for (size_t i = 0; i < uninterrupted.weights.size(); ++i) {
    CHECK(at::equal(resumed.weights[i], uninterrupted.weights[i]));
  }
}

TEST_CASE("a run that was saved at its end has nothing left to do", "[resume]") {
  const auto keep = std::make_shared<Keep>(epochs - 1, -1);
  const Outcome uninterrupted = trained(keep);
  const Outcome resumed = trained(GoOn(keep->saved));
  CHECK(resumed.history.to_json() == uninterrupted.history.to_json());
  CHECK(resumed.history.steps.size() == steps * epochs);
}

TEST_CASE("totals that are not from metric_totals() are refused", "[resume]") {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts("data", create_mesh({{"batch", 2}}))));
  const std::string text = GENERATE(
      "3", "{}", R"({"loss": [1], "metrics": {}})", R"({"loss": [1, 2]})",
      R"({"loss": [1, 2], "metrics": {"accuracy": 3}})", R"({"loss": ["a", 2], "metrics": {}})");
  CHECK_THROWS_WITH(model->restore_metric_totals(Json::parse(text)),
                    Contains("totals are a result of metric_totals()"));
}

TEST_CASE("a position outside the run's data is refused", "[resume]") {
  const auto error = [](const FitPosition& position) -> std::string {
    struct Jump : Callback {
      explicit Jump(const FitPosition& target) : to(target) {}
      void on_train_begin() override { model().set_fit_position(to); }
      FitPosition to;
    };
    try {
      trained(std::make_shared<Jump>(position));
      return "";
    } catch (const ConfigError& failure) {
      return failure.what();
    }
  };
  CHECK_THAT(error({1, steps + 1}), Contains("[fit] the run resumes inside an epoch of 5 steps. "
                                             "Received: a position at epoch 2 with 6 steps done"));
  CHECK_THAT(error({-1, 0}), Contains("[set_fit_position]") && Contains("epoch -1, step 0"));
  CHECK_THAT(error({0, -1}), Contains("[set_fit_position]") && Contains("epoch 0, step -1"));
  CHECK(error({1, steps}) == "");
  CHECK(error({epochs, steps + 1}) == "");
}

}  // namespace resume_test
