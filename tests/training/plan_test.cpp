#include <tessera/tessera.hpp>

#include <numeric>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/allocation_counter.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/comm_lines.hpp"
#include "tests/support/small_model.hpp"

namespace plan_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t rows = 64;

Sequential compiled(const test::SmallScheme& scheme,
                    const OptimizerHandle& optimizer = Adam(1e-2)) {
  const Sequential model = test::small_model();
  CompileOptions options =
      test::small_compile(test::small_layouts(scheme.layouts, create_mesh(scheme.mesh)));
  options.optimizer = optimizer;
  model.compile(options);
  return model;
}

Batch batch_of(const test::SmallScheme& scheme) {
  std::vector<int64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  return pack_batch(test::small_data(rows).get(all),
                    test::small_layouts(scheme.layouts, create_mesh(scheme.mesh)));
}

/// Returns the bytes of one column on all devices.
double total(const StepPlan& plan, std::vector<double> StepPlan::Row::*column, bool batch = false) {
  double sum = 0;
  for (const StepPlan::Row& layer : plan.layers) {
    if ((layer.path == "batch") != batch) continue;
    for (double bytes : layer.*column) sum += bytes;
  }
  return sum;
}

class OneThread {
 public:
  OneThread() : previous_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(previous_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int previous_;
};

}  // namespace

TEST_CASE("a plan's collectives are those of a real step, in order", "[plan]") {
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    CAPTURE(scheme.layouts);
    const std::vector<OptimizerHandle> optimizers = {Adam(1e-2),
                                                     SGD(0.1, {.global_clipnorm = 1.0})};
    for (const OptimizerHandle& optimizer : optimizers) {
      const Sequential model = compiled(scheme, optimizer);
      const StepPlan plan = model.plan(test::small_data(rows), {.batch_size = rows});
      for (const Variable& weight : model.weights()) CHECK_FALSE(weight.has_value());
      CHECK(optimizer->iterations() == 0);
      CommLog log;
      const Batch batch = batch_of(scheme);
      {
        const CommLogScope logged(log);
        model.model().train_step(batch).loss().full();
      }
      CHECK(test::comm_lines(plan.collectives) == test::comm_lines(log.entries()));
      CHECK(plan.collectives.empty() == (scheme.mesh.size() == 0));
    }
  }
}

TEST_CASE("a plan's bytes are what a real step allocates", "[plan]") {
  const OneThread serial;
  const BlockPolicyScope separate(BlockPolicy::per_device);
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    CAPTURE(scheme.layouts);
    const Sequential model = compiled(scheme);
    const StepPlan plan = model.plan(test::small_data(rows), {.batch_size = rows});
    const auto close = [](const char* what, int64_t held, double planned) {
      CAPTURE(what, held, planned);
      CHECK(planned > 0);
      CHECK(static_cast<double>(held) == Approx(planned).epsilon(0.1));
    };
    std::vector<DTensor> weights;
    {
      const test::AllocationCounter counter;
      for (const Variable& weight : model.weights()) weights.push_back(weight.value());
      close("weights", counter.held(), total(plan, &StepPlan::Row::weights));
    }
    {
      const test::AllocationCounter counter;
      for (const Variable& slot : model->optimizer()->variables()) slot.value();
      close("slots", counter.held(), total(plan, &StepPlan::Row::slots));
    }
    // Shards that are views of the loader's tensor have no memory of their own to count.
    const Batch batch = batch_of(scheme);
    size_t bytes = 0;
    for (const DTensor& tensor : {batch.x[0], batch.y[0]}) {
      for (const at::Tensor& block : tensor.blocks()) bytes += block.nbytes();
    }
    close("batch", static_cast<int64_t>(bytes), total(plan, &StepPlan::Row::activations, true));
    const test::AllocationCounter counter;
    const LossHandle loss = SparseCategoricalCrossentropy({.from_logits = true});
    GradientTape tape;
    const DTensor value = (*loss)(batch.y[0], model(batch.x[0], {.training = true}));
    close("activations", counter.held(),
          total(plan, &StepPlan::Row::activations) + total(plan, &StepPlan::Row::gathered));
    const std::vector<DTensor> gradients = tape.gradient(
        value, weights,
        {.on_ready = model->optimizer()->reduce_when_ready(model.trainable_weights())});
    close("gradients", counter.held(), total(plan, &StepPlan::Row::gradients));
  }
}

TEST_CASE("a plan is printed as tables and as JSON", "[plan]") {
  const Sequential model = compiled(test::small_schemes()[1]);
  const StepPlan plan = model.plan(test::small_data(rows), {.batch_size = rows});
  const std::string text = plan.to_string();
  CHECK_THAT(text, Contains("mesh batch=4, model=2") && Contains("hidden_1 (Dense)"));
  CHECK_THAT(text, Contains("all_reduce") && Contains("│ hidden_2/kernel"));
  const Json json = plan.to_json();
  CHECK(json.at("layers").size() == plan.layers.size());
  CHECK(json.at("layers")[1].at("weights").size() == 8);
  CHECK(json.at("collectives").size() == plan.collectives.size());
  double sum = 0;
  for (const StepPlan::Row& layer : plan.layers) {
    sum += layer.weights[3] + layer.gradients[3] + layer.slots[3] + layer.activations[3];
  }
  CHECK(plan.bytes(3) == sum);
}

TEST_CASE("a plan of stages prints no columns of what it does not know", "[plan]") {
  LayoutMap layouts(create_mesh({{"stage", 2}, {"batch", 1}}));
  layouts.set_pipeline({.microbatches = 4, .split = {"hidden_2"}});
  const Sequential model = test::small_model();
  model.compile(test::small_compile(layouts));
  const std::string text = model.plan(test::small_data(rows), {.batch_size = rows}).to_string();
  CHECK_THAT(text, Contains("Weights") && Contains("Slots") && Contains("hidden_2 (Dense)"));
  CHECK_THAT(text, !Contains("Activations") && !Contains("Gradients") && !Contains("Casts"));
}

TEST_CASE("planning leaves training unchanged", "[plan]") {
  const auto train = [](bool planned) {
    const Sequential model = compiled(test::small_schemes().back());
    if (planned) model.plan(test::small_data(rows), {.batch_size = 16});
    return model.fit(test::small_data(rows), {.batch_size = 16, .epochs = 2, .verbose = 0});
  };
  const History with = train(true), without = train(false);
  CHECK(with.steps == without.steps);
  CHECK(with.history == without.history);
}

TEST_CASE("a step can be planned after others", "[plan]") {
  const auto train = [](bool planned) {
    const Sequential model = compiled(test::small_schemes().back());
    const auto epoch = [&] {
      return model.fit(test::small_data(rows), {.batch_size = 16, .verbose = 0}).steps;
    };
    const std::string before = model.plan(test::small_data(rows)).to_string();
    epoch();
    if (planned) CHECK(model.plan(test::small_data(rows)).to_string() == before);
    return epoch();
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("layers may have the names of a plan's own rows", "[plan]") {
  const Sequential model({Input({4}), Dense(3, {.name = "batch"}), Dense(2, {.name = "loss"})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const StepPlan plan = model.plan(DatasetHandle(at::rand({8, 4}), at::rand({8, 2})));
  std::vector<double> weights;
  for (const StepPlan::Row& layer : plan.layers) weights.push_back(layer.weights[0]);
  CHECK(weights == std::vector<double>{0, 4 * 15, 4 * 8, 0});
}

TEST_CASE("steps that cannot be planned are refused", "[plan]") {
  const Sequential model = test::small_model();
  CHECK_THROWS_AS(model.plan(test::small_data(8)), StateError);
  const Sequential ready = compiled(test::small_schemes()[0]);
  CHECK_THROWS_WITH(ready.plan(test::small_data(8), {.batch_size = 0}), Contains("batch_size"));
  CHECK_THROWS_WITH(ready.plan(DatasetHandle()), Contains("[plan]"));
}

}  // namespace plan_test
