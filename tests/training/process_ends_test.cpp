#include <signal.h>

#include <tessera/tessera.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/training/callbacks/callbacks.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/rank_ends.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_communicator.hpp"

namespace process_ends_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// The small data with `value` in all features of one row.
TensorDataset with_row(int64_t rows, int64_t row, double value) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < rows; ++i) numbers.push_back(i);
  const c10::InferenceMode inference;
  Examples all = test::small_data(rows).get(numbers);
  all.x[0].select(0, row).fill_(value);
  return TensorDataset(all);
}

/// |x|, whose gradient at 0 is NaN.
class Root final : public Layer {
 public:
  std::string class_name() const override { return "Root"; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return ops::sqrt(ops::square(inputs[0]));
  }
};

Sequential rooted(const Mesh& mesh, const OptimizerHandle& optimizer) {
  const Sequential model({Dense(5, {.use_bias = false, .name = "hidden", .dtype = "float64"}),
                          LayerHandle(std::make_shared<Root>())});
  CompileOptions options = test::small_compile(LayoutMap(mesh));
  options.optimizer = optimizer;
  model.compile(options);
  return model;
}

/// Sends the process a signal after a batch, and counts its interruptions.
class Signalling final : public Callback {
 public:
  Signalling(bool sends, int64_t epoch, int64_t batch)
      : sends_(sends), epoch_(epoch), batch_(batch) {}
  void on_epoch_begin(int64_t epoch) override { now_ = epoch; }
  void on_train_batch_end(int64_t batch, const Logs&) override {
    if (sends_ && now_ == epoch_ && batch == batch_) ::raise(SIGTERM);
  }
  void on_interrupt() override {
    ++interrupts;
    position = model().fit_position();
  }
  bool wants_batch_logs(int64_t) override { return false; }
  int interrupts = 0;
  FitPosition position;

 private:
  bool sends_;
  int64_t epoch_, batch_, now_ = 0;
};

/// Passes each event's name on.
class EventObserver final : public Callback {
 public:
  explicit EventObserver(std::function<void(const std::string& event)> tell)
      : tell_(std::move(tell)) {}
  void on_train_begin() override { tell_("train begin"); }
  void on_train_end(const Logs&) override { tell_("train end"); }
  void on_epoch_begin(int64_t) override { tell_("epoch begin"); }
  void on_epoch_end(int64_t, Logs&) override { tell_("epoch end"); }
  void on_train_batch_end(int64_t, const Logs&) override { tell_("batch end"); }
  void on_test_begin() override { tell_("test begin"); }
  void on_test_end(const Logs&) override { tell_("test end"); }

 private:
  std::function<void(const std::string& event)> tell_;
};

}  // namespace

TEST_CASE("a signal to one process ends fit on all after the same step") {
  const StopSignals signals;
  const auto all = test::rank_outcomes(3, [&](int rank, const Mesh& mesh) {
    const auto callback = std::make_shared<Signalling>(rank == 1, 1, 2);
    int caught = 0;
    try {
      test::compiled_small(mesh).fit(
          test::small_data(20),
          {.batch_size = 4, .epochs = 3, .verbose = 0, .callbacks = {CallbackHandle(callback)}});
    } catch (const Interrupted& interrupted) {
      caught = interrupted.signal();
      test::expect(callback->interrupts == 1, "told once");
      test::expect(callback->position.epoch == 1 && callback->position.step == 3, "position");
      throw;
    }
    test::expect(caught == SIGTERM, "signal");
  });
  clear_stop_signal();
  for (const test::RankOutcome& end : all) {
    CHECK(end.error == all[0].error);
    CHECK_THAT(end.error, Contains("[fit] Received: SIGTERM on rank ") &&
                              Contains(" at epoch 2, step 3. To fix: start it again"));
    CHECK(end.steps.size() == 8);
    CHECK(end.noted == end.error);
  }
}

TEST_CASE("a single process ends after the step, too") {
  const StopSignals signals;
  const auto callback = std::make_shared<Signalling>(true, 0, 1);
  const Mesh mesh = create_mesh({{"batch", 4}});
  const FitOptions options{.batch_size = 4, .verbose = 0, .callbacks = {CallbackHandle(callback)}};
  CHECK_THROWS_WITH(test::compiled_small(mesh).fit(test::small_data(20), options),
                    Contains("[fit] Received: SIGTERM at epoch 1, step 2."));
  CHECK(callback->interrupts == 1);
  // The signal is still pending.
  CHECK_THROWS_WITH(
      test::compiled_small(mesh).evaluate(test::small_data(8), {.batch_size = 4, .verbose = 0}),
      Contains("[evaluate] Received: SIGTERM at step 0."));
  CHECK_THROWS_AS(test::compiled_small(mesh).predict(test::small_data(8), {}), Interrupted);
  clear_stop_signal();
  CHECK(test::compiled_small(mesh).predict(test::small_data(8), {}).size(0) == 8);
}

TEST_CASE("a signal ends evaluate and predict on all processes in the same step") {
  const StopSignals signals;
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    const CallbackHandle callback = LambdaCallback({.on_predict_batch_end = [&](int64_t batch) {
      if (rank == 1 && batch == 1) ::raise(SIGINT);
    }});
    test::compiled_small(mesh).predict(test::small_data(20),
                                       {.batch_size = 4, .callbacks = {callback}});
  });
  clear_stop_signal();
  for (const test::RankOutcome& end : all) {
    CHECK_THAT(end.error, Contains("[predict] Received: SIGINT on rank ") &&
                              Contains(" at step 2. To fix: start it again."));
    CHECK(end.steps.size() == 2);
  }
}

TEST_CASE("a signal takes precedence over a callback's request to stop") {
  const StopSignals signals;
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    const Sequential model = test::compiled_small(mesh);
    const CallbackHandle callback =
        LambdaCallback({.on_train_batch_end = [&](int64_t batch, const Logs&) {
          if (rank == 0 && batch == 1) model->set_stop_training(true);
          if (rank == 1 && batch == 1) ::raise(SIGTERM);
        }});
    model.fit(test::small_data(20), {.batch_size = 4, .verbose = 0, .callbacks = {callback}});
  });
  clear_stop_signal();
  for (const test::RankOutcome& end : all) CHECK_THAT(end.error, Contains("SIGTERM"));
}

TEST_CASE("a non-finite loss on one process ends training on all and names the rank") {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    // Row 6 is the third of the second batch.
    const TensorDataset data = with_row(12, 6, value);
    const FitOptions options{.batch_size = 4, .verbose = 0, .shuffle = false};
    const auto all = test::rank_outcomes(
        2, [&](int, const Mesh& mesh) { test::compiled_small(mesh).fit(data, options); });
    for (const test::RankOutcome& end : all) {
      CHECK_THAT(end.error, Contains("[fit] the loss stays finite. Received: ") &&
                                Contains("nan at epoch 1, step 2 (the partial sum of rank 1)."));
      CHECK(end.steps.size() == 2);
    }
    CHECK_THROWS_WITH(
        test::compiled_small(create_mesh({{"batch", 4}})).fit(data, options),
        Contains("nan at epoch 1, step 2 in the partial sum of cpu:2, cpu:3: x[0] of the "
                 "batch, row 2 (row 6 of the data) has infinite numbers or NaN."));
  }
}

TEST_CASE("if every process has a non-finite part, none is named") {
  const auto all = test::rank_outcomes(2, [&](int, const Mesh& mesh) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    const Sequential model = test::compiled_small(mesh);
    model.build({-1, 18});
    model.set_weights([&] {
      std::vector<at::Tensor> weights = model.get_weights();
      weights[0] = at::full_like(weights[0], none);
      return weights;
    }());
    model.fit(test::small_data(8), {.batch_size = 4, .verbose = 0});
  });
  for (const test::RankOutcome& end : all) {
    CHECK_THAT(end.error, Contains("nan at epoch 1, step 1. To fix"));
  }
}

TEST_CASE("a callback that accepts non-finite losses gets them on every process") {
  const TensorDataset data = with_row(12, 6, std::numeric_limits<double>::quiet_NaN());
  const auto all = test::rank_outcomes(2, [&](int, const Mesh& mesh) {
    const History history = test::compiled_small(mesh).fit(
        data, {.batch_size = 4, .verbose = 0, .callbacks = {TerminateOnNaN()}, .shuffle = false});
    test::expect(history.steps.size() == 2, "ends after its batch");
  });
  CHECK(all[0].error + all[1].error == "");
}

TEST_CASE("a non-finite gradient on one process ends training on all in its step") {
  const TensorDataset data = with_row(12, 6, 0);
  const auto fit = [&](const SGDOptions& sgd, bool terminates) {
    return test::rank_outcomes(2, [&](int, const Mesh& mesh) {
      FitOptions options{.batch_size = 4, .verbose = 0, .shuffle = false};
      if (terminates) options.callbacks = {TerminateOnNaN()};
      rooted(mesh, SGD(0.01, sgd)).fit(data, options);
    });
  };
  for (const test::RankOutcome& end : fit({}, false)) {
    CHECK_THAT(
        end.error,
        Contains(
            "[fit] gradients stay finite. Received: infinite numbers or NaN in the gradient of "
            "hidden/kernel on rank 1 at epoch 1, step 2."));
    CHECK(end.steps.size() == 2);
  }
  // A scaled loss tolerates it; the weights then make the next loss NaN.
  for (const test::RankOutcome& end : fit({.loss_scale_factor = 8}, false)) {
    CHECK_THAT(end.error, Contains("nan at epoch 1, step 3."));
  }
  for (const test::RankOutcome& end : fit({}, true)) CHECK(end.error == "");
}

TEST_CASE("no callback sees a step with non-finite gradients, as it might save it") {
  std::vector<int64_t> heard(2);
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    const CallbackHandle callback = LambdaCallback(
        {.on_train_batch_end = [&](int64_t, const Logs&) { ++heard[size_t(rank)]; }});
    rooted(mesh, SGD(0.01))
        .fit(with_row(12, 6, 0),
             {.batch_size = 4, .verbose = 0, .callbacks = {callback}, .shuffle = false});
  });
  for (const test::RankOutcome& end : all) {
    CHECK_THAT(end.error, Contains("gradient of hidden/kernel on rank 1 at epoch 1, step 2."));
    CHECK(end.noted == end.error);
  }
  CHECK(heard == std::vector<int64_t>{1, 1});
}

TEST_CASE("a callback's error on one process does not skip collectives of later callbacks") {
  const std::vector<std::string> events = {"train begin", "epoch begin", "batch end", "epoch end",
                                           "train end",   "test begin",  "test end"};
  for (const std::string& event : events) {
    CAPTURE(event);
    const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
      const auto fail = [rank, event](const std::string& now) {
        if (rank == 0 && now == event) throw FileError("log.csv", "can be written", "no space", "");
      };
      const auto meet = [mesh, event](const std::string& now) {
        if (now == event) communicator_of(mesh).gather("later", event);
      };
      const std::vector<CallbackHandle> callbacks = {std::make_shared<EventObserver>(fail),
                                                     std::make_shared<EventObserver>(meet)};
      test::compiled_small(mesh).fit(test::small_data(8), {.batch_size = 4,
                                                           .verbose = 0,
                                                           .callbacks = callbacks,
                                                           .validation_data = test::small_data(4)});
    });
    CHECK_THAT(all[0].error, Contains("[log.csv] can be written. Received: no space."));
    CHECK(all[0].noted == all[0].error);
    CHECK_THAT(all[1].error, Contains("[step] every process goes on. Received: an error on rank 0: "
                                      "[log.csv] can be written"));
  }
}

}  // namespace process_ends_test
