#include "tests/support/step_graphs.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/step_memory.hpp"

namespace step_graph_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

constexpr int64_t rows = 64;

Examples all_rows() {
  std::vector<int64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  return small_data(rows).get(all);
}

Sequential compiled(const LayoutMap& layouts, const OptimizerHandle& optimizer) {
  const Sequential model = small_model();
  CompileOptions options = small_compile(layouts);
  options.optimizer = optimizer;
  model.compile(options);
  model.build({rows, 18});
  return model;
}

/// Adds a branch that a plan does not see.
class LocalBranch final : public Layer {
 public:
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }
  std::string class_name() const override { return "LocalBranch"; }

 private:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0].mesh().is_local() ? ops::relu(inputs[0]) : inputs[0];
  }
};

}  // namespace

TEST_CASE("the graph of a planned step is that of a real second step", "[graph]") {
  for (const SmallScheme& scheme : small_schemes()) {
    for (const OptimizerHandle& optimizer :
         std::vector<OptimizerHandle>{Adam(1e-2), SGD(0.1, {.global_clipnorm = 1.0}),
                                      Adam(1e-2, {.gradient_accumulation_steps = 2})}) {
      CAPTURE(scheme.layouts, scheme.mesh.size());
      const LayoutMap layouts = small_layouts(scheme.layouts, create_mesh(scheme.mesh));
      const Sequential model = compiled(layouts, optimizer);
      StepGraph planned = planned_graph(model, all_rows(), layouts);
      StepGraph real = second_graph(model, all_rows(), layouts);
      // A plan reduces the gradients of the step that updates, a real one the sum of several.
      const bool sums =
          optimizer->config().value("gradient_accumulation_steps", Json()).is_number();
      for (StepGraph* graph : {&planned, &real}) {
        for (StepGraph::Node& node : graph->nodes) {
          if (sums) node.reduced.clear();
        }
      }
      CHECK(planned.nodes.size() > 10);
      CHECK(planned.difference(real) == "");
    }
  }
}

TEST_CASE("a constant that the step does not make counts for no peak", "[graph]") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const ShardingPtr rows_of_64 = intern({64}, at::kFloat, Layout(LayoutSpec{"batch"}, mesh));
  const auto value = [](int32_t number) {
    return StepGraph::Operand{StepGraph::Operand::Kind::value, number};
  };
  StepGraph graph;
  graph.values = {{rows_of_64, 0}, {rows_of_64, 1}, {rows_of_64, 2}};
  graph.nodes = {{.in = {value(0)}, .out = {1}}, {.in = {value(1)}, .out = {2}}};
  for (const StepPlan::Peak& peak : peaks_of(graph, mesh)) CHECK(peak.total() == 2 * 32 * 4);
}

TEST_CASE("the graph of a planned step is that of a real one, of states and penalties", "[graph]") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  LayoutMap layouts(mesh);
  layouts.fully_shard("batch");
  const auto check = [&](const Sequential& model, const Examples& batch) {
    model.compile({.optimizer = Adam(1e-2), .loss = "mse", .metrics = {"mae"}, .layouts = layouts});
    Shape shape = batch.x[0].sizes().vec();
    model.build(shape);
    const StepGraph planned = planned_graph(model, batch, layouts);
    CHECK(planned.difference(second_graph(model, batch, layouts)) == "");
  };
  const at::Tensor images = at::rand({8, 6, 6, 3}), y = at::rand({8, 4});
  check(Sequential({Conv2D(8, 3, {.activation = "relu", .kernel_regularizer = L2(0.01)}),
                    BatchNormalization(), Dropout(0.3), Flatten(), Dense(4)}),
        {.x = {images}, .y = {y}});
  check(Sequential({LSTM(6, {.return_sequences = true}), LayerNormalization(), GRU(5), Dense(4)}),
        {.x = {at::rand({8, 7, 3})}, .y = {y}});
}

TEST_CASE("a layer that computes otherwise while it plans is found", "[graph]") {
  const LayoutMap layouts = small_layouts("data", create_mesh({{"batch", 2}}));
  const Sequential model({make_layer<LocalBranch>(), Dense(5)});
  model.compile({.optimizer = "sgd",
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  model.build({rows, 18});
  const Examples batch = {.x = {at::rand({rows, 18})}, .y = {at::zeros({rows}, at::kLong)}};
  const StepGraph planned = planned_graph(model, batch, layouts);
  CHECK_THAT(planned.difference(second_graph(model, batch, layouts)), Contains("relu"));
}

TEST_CASE("a plan's peak is what a replayed step allocates, use by use", "[graph]") {
  for (const std::string kind : {"data", "fully_shard", "never"}) {
    for (const int64_t devices : {1, 2, 4, 7, 8}) {
      // Shards of one device are whole weights, which a plan does not tell apart.
      if (devices == 1 && kind != "data") continue;
      LayoutMap layouts(create_mesh({{"batch", devices}}));
      if (kind != "data") layouts.fully_shard({"batch", kind == "fully_shard"});
      const std::vector<DevicePeak> peaks = step_peaks(layouts);
      REQUIRE(std::ssize(peaks) == devices);
      for (size_t d = 0; d < peaks.size(); ++d) {
        const auto& [planned, measured] = peaks[d];
        for (MemoryUse use : memory_uses) {
          CAPTURE(kind, devices, d, planned.place, to_string(use));
          // A plan counts tensors below 1 KiB, too: the loss, seeds.
          CHECK(measured[use] == Approx(planned[use]).epsilon(0.03).margin(1024));
        }
        CHECK(measured.total() == Approx(planned.total()).epsilon(0.03));
      }
    }
  }
}

TEST_CASE("weights that stay gathered, and activations, are in the peak that is measured",
          "[graph]") {
  LayoutMap layouts(create_mesh({{"batch", 4}}));
  layouts.fully_shard({"batch", false});
  for (const auto& [planned, measured] : step_peaks(layouts)) {
    const double kernel = 4 * 256 * 256, activation = 4 * 64 * 256 / 4.0;
    CHECK(measured.gathered >= 4 * kernel);
    CHECK(measured.gradients >= kernel);
    CHECK(measured.activations >= 5 * activation);
    CHECK(measured.casts == 0);
  }
}

TEST_CASE("gathered weights do not take more memory in a deeper model", "[graph]") {
  LayoutMap layouts(create_mesh({{"batch", 4}}));
  layouts.fully_shard("batch");
  // Returns the most bytes of gathered weights that device 0 holds at a time.
  const auto gathered = [&](int64_t depth) {
    const Sequential model = wide_layers(depth, layouts);
    const StepGraph graph = planned_graph(model, wide_batch(), layouts);
    const auto is_gathered = [&](int32_t v) {
      const StepGraph::Value& value = graph.values[size_t(v)];
      return value.use == StepGraph::Use::gathered && value.memory == v;
    };
    std::map<int32_t, size_t> last;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (int32_t v : graph.nodes[n].out) last[v] = n;
      for (const StepGraph::Operand& in : graph.nodes[n].in) {
        if (in.kind != StepGraph::Operand::Kind::value) continue;
        const int32_t memory = graph.values[size_t(in.number)].memory;
        if (memory >= 0) last[memory] = n;
      }
    }
    double held = 0, most = 0;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (int32_t v : graph.nodes[n].out) {
        if (is_gathered(v)) held += bytes_by_device(*graph.values[size_t(v)].sharding)[0];
      }
      most = std::max(most, held);
      for (const auto& [v, node] : last) {
        if (node == n && is_gathered(v)) {
          held -= bytes_by_device(*graph.values[size_t(v)].sharding)[0];
        }
      }
    }
    return most;
  };
  const double layer = 4 * 257 * 256;
  const double few = gathered(4);
  CHECK(few > 0);
  CHECK(few <= 2 * layer);
  CHECK(std::abs(gathered(16) - few) <= 0.05 * layer);
}

TEST_CASE("a step that does not fit is refused before it runs, naming a layer", "[graph]") {
  const LayoutMap layouts = small_layouts("data", create_mesh({{"batch", 2}}));
  const Sequential model = compiled(layouts, Adam(1e-2));
  const DatasetHandle data = small_data(rows);
  const double needed = model.plan(data, {.batch_size = rows}).peaks[0].total();
  CHECK_NOTHROW(model.plan(data, {.batch_size = rows, .memory_limit = needed}));
  const auto plan = [&] { model.plan(data, {.batch_size = rows, .memory_limit = needed - 1}); };
  CHECK_THROWS_WITH(plan(), Contains("a training step fits in") && Contains("device 0") &&
                                Contains("activations") && Contains("hidden_"));
  CHECK_THROWS_WITH(model.fit(data, {.batch_size = rows, .verbose = 0, .memory_limit = needed / 2}),
                    Contains("a training step fits in"));
  CHECK(model->optimizer()->iterations() == 0);
  CHECK_NOTHROW(model.fit(data, {.batch_size = rows, .verbose = 0, .memory_limit = needed}));
}

TEST_CASE("an epoch's logs have rates and the share of the devices' operations", "[graph]") {
  const LayoutMap layouts = small_layouts("data", create_mesh({{"batch", 2}}));
  const Sequential model = compiled(layouts, SGD(0.1));
  const DatasetHandle data = small_data(rows);
  const double flops = model.plan(data, {.batch_size = 16}).flops / 16;
  const FitOptions plain{.batch_size = 16, .verbose = 0};
  const auto has = [](const History& history, const std::string& name) {
    return std::any_of(history.history.begin(), history.history.end(),
                       [&](const auto& values) { return values.first == name; });
  };
  CHECK_FALSE(has(model.fit(data, plain), "flops_per_second"));
  FitOptions rated = plain;
  rated.peak_flops = 1e9;
  const History history = model.fit(data, rated);
  const double rate = history.at("flops_per_second")[0];
  CHECK(rate / history.at("rows_per_second")[0] == Approx(flops));
  CHECK(history.at("mfu")[0] == Approx(rate / 2e9));
  rated.peak_flops = 0;
  const History without = model.fit(data, rated);
  CHECK(has(without, "flops_per_second"));
  CHECK_FALSE(has(without, "mfu"));
}

TEST_CASE("when memory runs out, the error says what the step holds and where", "[graph]") {
  // A relu of 2^20 rows and 2^22 units would take 16 TiB.
  const int64_t many = int64_t{1} << 20, units = int64_t{1} << 22;
  const Sequential model({Dense(units, {.activation = "relu", .use_bias = false, .name = "wide"})});
  model.compile(
      {.optimizer = SGD(0.1), .loss = SparseCategoricalCrossentropy({.from_logits = true})});
  model.build({many, 1});
  const auto fit = [&] {
    model.fit(DatasetHandle(at::ones({many, 1}), at::zeros({many}, at::kLong)),
              {.batch_size = many, .verbose = 0});
  };
  CHECK_THROWS_WITH(fit(), Contains("a training step fits in memory") && Contains("16.0") &&
                               Contains("wide") && Contains("activations") && Contains("To fix"));
  CHECK(model->optimizer()->iterations() == 0);
}

TEST_CASE("a plan counts floating-point operations", "[graph]") {
  const LayoutMap layouts = small_layouts("data", create_mesh({{"batch", 2}}));
  const StepPlan plan = compiled(layouts, SGD(0.1)).plan(small_data(rows), {.batch_size = rows});
  // Forward, the kernels' gradients, and the features' but for those of the data.
  const double forward = 2.0 * rows * (18 * 14 + 14 * 9 + 9 * 5);
  const double backward = 2 * forward - 2.0 * rows * 18 * 14;
  CHECK(plan.flops >= forward + backward);
  CHECK(plan.flops < 1.2 * (forward + backward));
  const Sequential image({Conv2D(4, 3, {.padding = "same", .use_bias = false})});
  image.compile({.optimizer = "sgd", .loss = "mse"});
  image.build({2, 8, 8, 3});
  const StepPlan conv =
      image.plan(DatasetHandle(at::rand({2, 8, 8, 3}), at::rand({2, 8, 8, 4})), {.batch_size = 2});
  const double products = 2.0 * 2 * 8 * 8 * 4 * 3 * 3 * 3;
  CHECK(conv.flops >= 2 * products);
  CHECK(conv.flops < 2.3 * products);
  CHECK_THAT(plan.to_string(), Contains("Peak: ") && Contains("Floating-point operations: "));
  CHECK(plan.to_json().at("peaks").size() == 2);
}

}  // namespace step_graph_test
