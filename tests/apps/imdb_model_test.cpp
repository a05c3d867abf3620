#include "apps/imdb/models.hpp"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

#include "apps/imdb/schemes.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"

namespace imdb_model_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

CompileOptions sentiment_compile(const LayoutMap& layouts) {
  return {.optimizer = SGD(1e-2),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {"accuracy"},
          .layouts = layouts};
}

LayoutMap layouts_of(const imdb::Scheme& scheme) {
  return make_layout_map(scheme.layouts, create_mesh(*scheme.layouts.mesh));
}

/// Rows like tf-idf's, mostly 0; the labels depend on them.
TensorDataset reviews(int64_t rows, at::ScalarType dtype) {
  const at::Tensor seen = (at::arange(rows * 1200).remainder(101) * 37).remainder(101).lt(8);
  const at::Tensor x = (at::arange(rows * 1200).remainder(89) / 20.0 + 0.7) * seen;
  const at::Tensor y = at::arange(rows).remainder(7).lt(3).to(at::kLong);
  return TensorDataset(x.reshape({rows, 1200}).to(dtype), y);
}

std::vector<int64_t> row_numbers() {
  std::vector<int64_t> rows(64);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// The collectives of a step on 64 reviews, and of reading its loss.
struct Step {
  CommLog train, loss;

  Step(const ModelHandle& model, const LayoutMap& layouts) {
    model.compile(sentiment_compile(layouts));
    const TensorDataset data = reviews(64, at::kFloat);
    // Weights are drawn and metrics are read before the measured step.
    model.fit(data, {.batch_size = 64, .verbose = 0, .shuffle = false});
    const Batch batch = pack_batch(data.get(row_numbers()), layouts);
    DTensor value;
    {
      const CommLogScope scope(train);
      value = model.model().train_step(batch).loss();
    }
    const CommLogScope scope(loss);
    value.full();
  }
};

/// Returns lines of the form "place: kind over dims, bytes", in order.
std::vector<std::string> lines(const std::vector<CommEntry>& entries) {
  std::vector<std::string> list;
  for (const CommEntry& entry : entries) {
    list.push_back(
        str(entry.place, ": ", to_string(entry.op), " over ", entry.dims, ", ", entry.bytes));
  }
  return list;
}

}  // namespace

TEST_CASE("imdb: the kernels' initial values are the tutorial's stateless draws") {
  const ModelHandle model = imdb::sentiment_model();
  model.build({-1, 1200});
  const std::vector<at::Tensor> weights = model.get_weights();
  REQUIRE(weights.size() == 6);
  CHECK(at::equal(weights[0], stateless_normal({1200, 48}, {1, 2}).full()));
  CHECK(at::equal(weights[1], at::zeros(48)));
  CHECK(at::equal(weights[4], stateless_normal({48, 2}, {3, 4}).full()));
  CHECK(model.trainable_weights().size() == 4);
}

TEST_CASE("imdb: a step communicates what the scheme says and nothing else") {
  const auto sum = [](const std::string& path, const std::string& dims, int64_t numbers) {
    return str(path, ": all_reduce over ", dims, ", ", 4 * numbers);
  };
  struct Expected {
    std::vector<std::string> forward;
    int64_t tokens, units;  ///< extents of the first kernel on one device
  };
  // Both moments of each unit, in float64.
  const auto moments = [&](int64_t units) { return sum("bn", "batch", 2 * 2 * units); };
  const std::vector<Expected> expected = {
      {{moments(48)}, 1200, 48},
      {{moments(24), sum("dense2", "model", 16 * 2)}, 1200, 24},
      {{sum("dense1", "feature", 32 * 24), moments(24), sum("dense2", "model", 32 * 2)}, 600, 24}};
  for (size_t s = 0; s < expected.size(); ++s) {
    const imdb::Scheme& scheme = imdb::schemes()[s];
    const auto& [forward, tokens, units] = expected[s];
    const ModelHandle model = imdb::sentiment_model();
    const Step step(model, layouts_of(scheme));
    CAPTURE(scheme.name, lines(step.train.entries()));
    std::vector<std::string> all = lines(step.train.entries());
    REQUIRE(all.size() == forward.size() + 5);
    CHECK(std::vector(all.begin(), all.begin() + int64_t(forward.size())) == forward);
    // Backward: an all-reduce of the moments' gradients, from which those of the normalization's
    // weights follow, then of each other variable's gradient.
    std::vector<std::string> backward = {
        moments(units), sum("dense1/kernel", "batch", tokens * units),
        sum("dense1/bias", "batch", units), sum("dense2/kernel", "batch", units * 2),
        sum("dense2/bias", "batch", 2)};
    all.erase(all.begin(), all.begin() + int64_t(forward.size()));
    CHECK(std::is_permutation(all.begin(), all.end(), backward.begin()));
    CHECK(lines(step.loss.entries()) == std::vector<std::string>{sum("", "batch", 1)});
    const StepPlan plan = model.plan(reviews(64, at::kFloat), {.batch_size = 64});
    std::vector<std::string> planned = lines(step.train.entries());
    planned.push_back(sum("", "batch", 1));
    CHECK(lines(plan.collectives) == planned);
  }
}

TEST_CASE("imdb: a plan's activations equal what a real step allocates") {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const BlockPolicyScope separate(BlockPolicy::per_device);
  for (const imdb::Scheme& scheme : imdb::schemes()) {
    CAPTURE(scheme.name);
    const LayoutMap layouts = layouts_of(scheme);
    const ModelHandle model = imdb::sentiment_model();
    model.compile(sentiment_compile(layouts));
    const TensorDataset data = reviews(64, at::kFloat);
    const StepPlan plan = model.plan(data, {.batch_size = 64});
    double planned = 0;
    for (const StepPlan::Row& layer : plan.layers) {
      if (layer.path == "batch") continue;
      for (double bytes : layer.activations) planned += bytes;
    }
    for (const Variable& weight : model.weights()) weight.value();
    const Batch batch = pack_batch(data.get(row_numbers()), layouts);
    const test::AllocationCounter counter;
    GradientTape tape;
    const LossHandle loss = SparseCategoricalCrossentropy({.from_logits = true});
    const DTensor value = (*loss)(batch.y[0], model(batch.x[0], {.training = true}));
    CHECK(static_cast<double>(counter.held()) == Approx(planned).epsilon(0.1));
  }
  at::set_num_threads(threads);
}

TEST_CASE("imdb: every scheme trains like one device in float64") {
  const test::DTypeScope double_precision("float64");
  const TensorDataset data = reviews(30 * 64 - 21, at::kDouble);
  const auto train = [&](const LayoutMap& layouts) {
    const ModelHandle model = imdb::sentiment_model();
    model.compile(sentiment_compile(layouts));
    const History history = model.fit(data, {.batch_size = 64, .verbose = 0, .shuffle = false});
    return std::pair(history.steps, model.get_weights());
  };
  const auto [steps, weights] = train(LayoutMap(create_mesh({{"batch", 1}})));
  REQUIRE(steps.size() == 30);
  for (const imdb::Scheme& scheme : imdb::schemes()) {
    CAPTURE(scheme.name);
    const auto [own_steps, own_weights] = train(layouts_of(scheme));
    CHECK(difference(at::tensor(own_steps, at::kDouble), at::tensor(steps, at::kDouble), 1e-9) ==
          "");
    for (size_t w = 0; w < weights.size(); ++w) {
      CHECK(difference(own_weights[w], weights[w], 1e-9, 1e-9) == "");
    }
  }
}

TEST_CASE("imdb: the reported loss is the mean, the gradient is the sum's") {
  const TensorDataset data = reviews(40, at::kFloat);
  const ModelHandle model = imdb::sentiment_model();
  model.compile(sentiment_compile(LayoutMap(create_mesh({{"batch", 1}}))));
  model.build({-1, 1200});
  const std::vector<at::Tensor> before = model.get_weights();
  const auto batch = [&] {
    std::vector<int64_t> rows(40);
    std::iota(rows.begin(), rows.end(), 0);
    return data.get(rows);
  };
  const Logs logs = model.train_on_batch(batch());
  const at::Tensor x = batch().x[0], y = batch().y[0];
  // Computes the expected loss by hand, on one device.
  const at::Tensor hidden = at::relu(at::matmul(x, before[0]) + before[1]);
  const at::Tensor normal = (hidden - hidden.mean(0)) / (hidden.var(0, false) + 1e-5).sqrt();
  const at::Tensor logits = at::matmul(normal, before[4]) + before[5];
  const at::Tensor of_rows = at::nll_loss(at::log_softmax(logits, 1), y, {}, at::Reduction::None);
  CHECK(find_value(logs, "loss").value() == Approx(of_rows.mean().item<double>()).epsilon(1e-5));
  const at::Tensor error = at::softmax(logits, 1) - at::one_hot(y, 2);
  const at::Tensor expected = before[5] - 1e-2 * error.sum(0);
  CHECK(difference(model.get_weights()[5], expected, 1e-4, 1e-6) == "");
}

}  // namespace imdb_model_test
