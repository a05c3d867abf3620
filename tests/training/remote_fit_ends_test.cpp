#include <signal.h>

#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

#include "tests/training/remote_fit.hpp"

namespace remote_fit_ends_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test::remote_fit;
using Catch::Matchers::Contains;

TEST_CASE("remote steps: stop_training ends the epoch after the steps that have begun",
          "[remote]") {
  const auto fake = std::make_shared<FakeSteps>();
  fake->at_a_time = 2;
  const auto listener = std::make_shared<Listener>();
  listener->stop_after = steps + 1;
  const Outcome outcome = trained(fake, {listener});
  CHECK(listener->ended == std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1});
  CHECK(outcome.history.steps.size() == steps + 2);
  CHECK(listener->epoch_ends == std::vector<int64_t>{0, 1});
  CHECK(outcome.history.epoch == std::vector<int64_t>{0, 1});
  CHECK(outcome.history.at("val_loss").size() == 2);
  const Outcome uninterrupted = trained(nullptr);
  for (size_t i = 0; i < outcome.history.steps.size(); ++i) {
    CHECK(outcome.history.steps[i] == Approx(uninterrupted.history.steps[i]));
  }
}

namespace {

/// Ends the run by a signal, in training or in validation, and saves its state then.
struct Signalled : Callback, OccasionalWeightReader {
  Signalled(bool testing, int64_t at_batch) : tests(testing), last(at_batch) {}
  void on_epoch_begin(int64_t epoch) override { now = epoch; }
  void on_train_batch_end(int64_t batch, const Logs&) override {
    if (!tests && now == 1 && batch == last) ::raise(SIGTERM);
  }
  void on_test_batch_end(int64_t batch, const Logs&) override {
    if (tests && now == 1 && batch == last) ::raise(SIGTERM);
  }
  std::optional<int64_t> batches_to_weights() override { return std::nullopt; }
  void on_interrupt() override { saved = saved_run(model()); }
  bool tests;
  int64_t last, now = 0;
  SavedRun saved;
};

struct GoOn : Callback {
  explicit GoOn(SavedRun from) : saved(std::move(from)) {}
  void on_train_begin() override {
    restore_run(saved, model());
    model().set_fit_position(saved.position);
    model().restore_metric_totals(saved.totals);
    model().set_history(saved.history);
  }
  SavedRun saved;
};

}  // namespace

TEST_CASE("remote steps: a run that a signal ends resumes where it was", "[remote]") {
  const auto [testing, batch] = GENERATE(
      table<bool, int64_t>({{false, 0}, {false, 2}, {false, steps - 1}, {true, 0}, {true, 1}}));
  CAPTURE(testing, batch);
  const StopSignals signals;
  const auto fake = std::make_shared<FakeSteps>();
  fake->at_a_time = 2;
  const auto signalled = std::make_shared<Signalled>(testing, batch);
  CHECK_THROWS_AS(trained(fake, {signalled}), Interrupted);
  clear_stop_signal();
  CHECK(fake->failure == "the fit was interrupted");
  CHECK(!fake->final_history);
  CHECK(signalled->saved.position.epoch == 1);
  if (testing) CHECK(signalled->saved.position.step == steps);
  const auto next = std::make_shared<FakeSteps>();
  check_equal(trained(next, {GoOn(signalled->saved)}), trained(nullptr));
}

TEST_CASE("remote steps: a NaN loss ends the fit", "[remote]") {
  const auto spoilt = [](bool accepts) {
    const StepExecutorScope scope(std::make_shared<FakeSteps>());
    const Sequential model = compiled_model();
    Examples all = test::small_data(rows).get(BatchRows(rows, {.batch_size = rows}).of(0));
    all.x[0] = all.x[0].clone();
    all.x[0][20][0] = std::nan("");
    FitOptions options{.batch_size = batch_size, .verbose = 0, .shuffle = false};
    if (accepts) options.callbacks = {TerminateOnNaN()};
    return model.fit(all, options);
  };
  CHECK_THROWS_WITH(spoilt(false), Contains("[fit] the loss stays finite. Received: ") &&
                                       Contains("nan at epoch 1, step 2"));
  CHECK(spoilt(true).steps.size() == 2);
}

TEST_CASE("remote steps: a callback's error reaches the executor", "[remote]") {
  struct Failing : Callback {
    void on_epoch_end(int64_t, Logs&) override { throw std::runtime_error("no more room"); }
  };
  const auto fake = std::make_shared<FakeSteps>();
  CHECK_THROWS_WITH(trained(fake, {Failing()}), "no more room");
  CHECK(fake->failure == "no more room");
}

}  // namespace remote_fit_ends_test
