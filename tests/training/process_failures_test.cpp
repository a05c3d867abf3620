#include <tessera/tessera.hpp>

#include <iostream>
#include <optional>
#include <sstream>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/training/callbacks/callbacks.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/rank_ends.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/warnings.hpp"

namespace process_failures_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns the rows of small_data in batches of 4, `count` of them an epoch; the batch `odd` has 3
/// rows.
GeneratorDataset stream(int64_t count, int64_t odd = -1) {
  return GeneratorDataset([count, odd] {
    const auto data = std::make_shared<TensorDataset>(test::small_data(40));
    return [=, step = int64_t(0)]() mutable -> std::optional<Examples> {
      if (step == count) return std::nullopt;
      std::vector<int64_t> rows;
      for (int64_t i = 0; i < (step == odd ? 3 : 4); ++i) rows.push_back(step * 4 + i);
      ++step;
      return data->get(rows);
    };
  });
}

/// Rows as wide as the largest number among them.
class Ragged final : public Dataset {
 public:
  int64_t size() const override { return 8; }
  Examples get(std::span<const int64_t> rows) const override {
    int64_t width = 1;
    for (int64_t row : rows) width = std::max(width, row + 1);
    return {.x = {at::zeros({int64_t(rows.size()), width}, at::kDouble)},
            .y = {at::zeros({int64_t(rows.size())}, at::kLong)}};
  }
  std::vector<Shape> input_shapes() const override { return {{18}}; }
};

}  // namespace

TEST_CASE("streams that end at different steps end the epoch for all, with one warning") {
  const test::Warnings warnings;
  std::vector<size_t> steps(3);
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    const Sequential model = test::compiled_small(mesh);
    const History history = model.fit(stream(rank == 1 ? 3 : 5), {.epochs = 2, .verbose = 0});
    steps[size_t(rank)] = history.steps.size();
    test::expect(history.epoch.size() == 2, "both epochs");
    if (rank == 0) steps[2] = history.steps.size();
  });
  CHECK(all[0].error == "");
  CHECK(all[1].error == "");
  CHECK(steps == std::vector<size_t>{6, 6, 6});
  const std::string line =
      "Warning: fit: the data do not end together (more on rank 0; no more on rank 1, after step "
      "3): the epoch ends for all\n";
  CHECK(warnings.text() == line + line);
}

TEST_CASE("a stream that ends before its first batch ends the epoch for all") {
  const test::Warnings warnings;
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    const Sequential model = test::compiled_small(mesh);
    model.build({-1, 18});
    const GeneratorDataset none([rank] { return stream(rank == 1 ? 0 : 2).start(0); });
    test::expect(model.fit(none, {.verbose = 0}).steps.empty(), "no steps");
  });
  CHECK(all[0].error + all[1].error == "");
  CHECK_THAT(warnings.text(), Contains("no more on rank 1, after step 0"));
}

TEST_CASE("batches of different shapes are an error on every process") {
  auto all = test::rank_outcomes(3, [&](int rank, const Mesh& mesh) {
    test::compiled_small(mesh).fit(stream(4, rank == 1 ? 2 : -1), {.verbose = 0});
  });
  for (const test::RankOutcome& end : all) {
    CHECK_THAT(
        end.error,
        Contains(
            "[fit] all processes have batches of the same shapes and dtypes. Received: 4 rows of x "
            "(18,) float64, y () int64 on ranks 0 and 2; 3 rows of x (18,) float64, y () "
            "int64 on rank 1, at step 3."));
    CHECK(end.steps.size() == 2);
  }
  all = test::rank_outcomes(2, [&](int, const Mesh& mesh) {
    test::compiled_small(mesh).predict(DatasetHandle(Ragged()), {.batch_size = 8});
  });
  for (const test::RankOutcome& end : all) {
    CHECK_THAT(end.error,
               Contains("[predict] all processes have batches of the same shapes and dtypes") &&
                   Contains("x (4,) float64, y () int64 on rank 0; 8 rows of x (8,)"));
  }
}

TEST_CASE("a process with different collectives is found in the same step") {
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    const auto call = [&](int64_t batch, const Logs&) {
      const Shape shape = {3};
      if (rank == 1 && batch == 1) communicator_of(mesh).begin({.mesh = mesh, .shape = shape});
    };
    const CallbackHandle extra = LambdaCallback({.on_train_batch_end = call});
    test::compiled_small(mesh).fit(test::small_data(16),
                                   {.batch_size = 4, .verbose = 0, .callbacks = {extra}});
  });
  for (const test::RankOutcome& end : all) {
    CHECK_THAT(end.error, Contains("every process makes the same collectives") &&
                              Contains("sequence 1 on rank 0; sequence 2 on rank 1"));
    CHECK(end.steps.size() == 2);
  }
}

TEST_CASE("communicators get every step and the signature of its global batch") {
  const auto all = test::rank_outcomes(2, [&](int, const Mesh& mesh) {
    const Sequential model = test::compiled_small(mesh);
    model.fit(test::small_data(11), {.batch_size = 8, .verbose = 0});
    model.evaluate(test::small_data(5), {.batch_size = 8, .verbose = 0});
    model.predict(test::small_data(6), {.batch_size = 8});
    model.train_on_batch(
        Examples{.x = {at::zeros({2, 18}, at::kDouble)}, .y = {at::zeros({2}, at::kLong)}});
    model.train_on_batch(
        Examples{.x = {at::zeros({8, 18}, at::kDouble)}, .y = {at::zeros({8}, at::kLong)}});
  });
  CHECK(all[0].error + all[1].error == "");
  // A process holds half of the rows; each gets the signature of all of them.
  CHECK(all[0].steps == all[1].steps);
  const auto& steps = all[0].steps;
  REQUIRE(steps.size() == 6);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(steps[i].first == int64_t(i));
    for (size_t j = 0; j < i; ++j) CHECK(steps[i].second != steps[j].second);
  }
  CHECK(steps[5].second == steps[0].second);
}

TEST_CASE("an exception in a step on one process is recorded for the others") {
  class Broken final : public Model {
   public:
    explicit Broken(int rank) : inner_(track(test::small_model())), rank_(rank) {}
    std::string class_name() const override { return "Broken"; }
    StepValues train_step(const Batch& batch) override {
      if (rank_ == 1) throw StateError("step", "works", "broken", "");
      return Model::train_step(batch);
    }

   protected:
    DTensor call(const Inputs& inputs, const CallContext& context) override {
      return inner_(inputs[0], context);
    }

   private:
    LayerHandle inner_;
    int rank_;
  };
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    const auto model = std::make_shared<Broken>(rank);
    model->compile(test::small_compile(LayoutMap(mesh)));
    model->fit(test::small_data(8), FitOptions{.batch_size = 4, .verbose = 0});
  });
  CHECK_THAT(all[1].error, Contains("[step] works. Received: broken."));
  CHECK(all[1].noted == all[1].error);
  CHECK_THAT(all[0].error, Contains("rank 1 has ended"));
  CHECK(all[0].noted == all[0].error);
}

namespace {

/// The differences of rank 1.
struct Run {
  Mesh mesh;
  std::optional<ReduceDtypeScope> reduce_dtype = std::nullopt;
  Sequential model = test::small_model();
  CompileOptions compile = {};
  DatasetHandle data = test::small_data(12);
  FitOptions fit = {.batch_size = 4, .verbose = 0};
};

/// Returns the error of fit where rank 1 of two differs; it is the same on both.
std::string difference_error(const std::function<void(Run&)>& change) {
  const auto all = test::rank_outcomes(2, [&](int rank, const Mesh& mesh) {
    Run run{.mesh = mesh};
    run.compile = test::small_compile(test::small_layouts("data", mesh));
    if (rank == 1) change(run);
    run.model.compile(run.compile);
    run.model.fit(run.data, run.fit);
  });
  CHECK(all[0].error == all[1].error);
  // Without an error they train.
  if (!all[0].error.empty()) CHECK(all[0].calls + all[1].calls == 0);
  return all[0].error;
}

}  // namespace

TEST_CASE("processes that differ are refused before the first collective") {
  CHECK(difference_error([](Run&) {}) == "");
  CHECK_THAT(difference_error([](Run& run) { run.fit.batch_size = 6; }),
             Contains("[fit]") && Contains("Received: batch_size (4 on rank 0; 6 on rank 1)."));
  CHECK_THAT(difference_error([](Run& run) { run.data = test::small_data(13); }),
             Contains("data's size (12 rows on rank 0; 13 rows on rank 1)"));
  CHECK_THAT(difference_error([](Run& run) { run.fit.validation_data = test::small_data(4); }),
             Contains("validation data (") && Contains("none on rank 0"));
  CHECK_THAT(difference_error([](Run& run) { run.fit.validation_split = 0.5; }),
             Contains("data's size (12 rows on rank 0; 6 rows on rank 1)"));
  CHECK_THAT(difference_error([](Run& run) { run.fit.epochs = 2; }), Contains("epochs (1 on"));
  CHECK_THAT(difference_error([](Run& run) { run.fit.initial_epoch = 1; }),
             Contains("initial_epoch (0 on"));
  CHECK_THAT(difference_error([](Run& run) { run.fit.steps_per_epoch = 2; }),
             Contains("steps_per_epoch (none on rank 0; 2 on rank 1)"));
  CHECK_THAT(difference_error([](Run& run) { run.fit.shuffle = false; }),
             Contains("shuffle (yes on rank 0; no on rank 1)"));
  CHECK_THAT(difference_error([](Run& run) {
               run.fit.class_weight = {{1, 2.0}};
             }),
             Contains("class_weight ("));
  CHECK_THAT(difference_error([](Run& run) { run.fit.callbacks = {TerminateOnNaN()}; }),
             Contains("callbacks (none on rank 0; Terminator on rank 1)"));
}

TEST_CASE("models and options of compile that differ are refused, too") {
  const auto rate = [](Run& run) { run.compile.optimizer = Adam(1e-3); };
  CHECK_THAT(difference_error(rate),
             Contains("optimizer's learning_rate (0.01 on rank 0; 0.001 on rank 1)"));
  CHECK_THAT(difference_error([](Run& run) { run.compile.optimizer = "sgd"; }),
             Contains("optimizer (Adam on rank 0; SGD on rank 1)"));
  CHECK_THAT(difference_error([](Run& run) { run.compile.loss = "mse"; }), Contains("loss ("));
  CHECK_THAT(difference_error([](Run& run) { run.compile.metrics = {}; }), Contains("metrics ("));
  CHECK_THAT(difference_error([](Run& run) { run.compile.bucket_cap_mb = 1; }),
             Contains("bucket_cap_mb (25 on rank 0; 1 on rank 1)"));
  CHECK_THAT(difference_error([](Run& run) { run.reduce_dtype.emplace(at::kBFloat16); }),
             Contains("reduce_dtype (float32 on rank 0; bfloat16 on rank 1)"));
  const auto layout = [](Run& run) { run.compile.layouts["logits/bias"] = {"batch"}; };
  CHECK_THAT(difference_error(layout), Contains("logits/bias: (batch) on rank 1"));
  const auto wider = [](Run& run) { run.model = Sequential({Dense(5)}); };
  const std::string text = difference_error(wider);
  CHECK_THAT(text, Contains("Sequential of 1 layers") && Contains("layer 1 (Dense {"));
  CHECK(text.find("seed (") == std::string::npos);
}

TEST_CASE("evaluated and predicted data must be equal as well") {
  const auto all = test::rank_outcomes(2, [](int rank, const Mesh& mesh) {
    test::compiled_small(mesh).evaluate(test::small_data(8),
                                        {.batch_size = 4 + rank, .verbose = 0});
  });
  CHECK_THAT(all[0].error, Contains("[evaluate]") && Contains("batch_size (4 on rank 0; 5 on"));
  CHECK(all[1].error == all[0].error);
  const auto other = test::rank_outcomes(2, [](int rank, const Mesh& mesh) {
    test::compiled_small(mesh).predict(test::small_data(8 + rank), {.batch_size = 4});
  });
  CHECK_THAT(other[1].error, Contains("[predict]") && Contains("data's size (8 rows on rank 0"));
}

}  // namespace process_failures_test
