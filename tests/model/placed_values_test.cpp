#include <tessera/tessera.hpp>

#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace placed_values_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

Mesh grid() { return create_mesh({{"batch", 2}, {"model", 2}}); }

at::Tensor numbers(Shape shape, uint64_t seed) {
  return random_values({std::move(shape), at::kDouble}, seed);
}

/// A layer that names an intermediate value.
class Gate : public Layer {
 public:
  using Layer::Layer;
  std::string class_name() const override { return "Gate"; }
  std::map<std::string, int64_t> value_names() const override { return {{"squares", 2}}; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }
  bool can_be_replayed() const override { return true; }

 private:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return ops::tanh(place("squares", ops::square(inputs[0])));
  }
};

/// Two dense layers, the gate and a head, on rows of 6 numbers.
Functional small_graph() {
  const SymbolicTensor x = Input({6}, {.name = "rows"});
  const SymbolicTensor up = Dense(9, {.activation = "tanh", .name = "up", .dtype = "float64"})(x);
  const SymbolicTensor down = Dense(7, {.name = "down", .dtype = "float64"})(up);
  const SymbolicTensor gated =
      make_layer<Gate>(LayerOptions{.name = "gate", .dtype = "float64"})(down);
  const SymbolicTensor y = Dense(3, {.name = "head", .dtype = "float64"})(gated + down);
  return Functional({x}, {y});
}

LayoutMap cut_weights() {
  LayoutMap layouts(grid());
  layouts["up/kernel"] = {unsharded, "model"};
  layouts["down/kernel"] = {"model", unsharded};
  return layouts;
}

/// Returns rows and their labels of 3 classes.
std::pair<at::Tensor, at::Tensor> data() {
  return {numbers({16, 6}, 1), at::arange(16).remainder(3)};
}

CompileOptions options_for(const LayoutMap& layouts) {
  return {.optimizer = Adam(1e-2),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .layouts = layouts};
}

std::vector<double> losses(const Functional& model, const LayoutMap& layouts) {
  set_random_seed(7);
  model.compile(options_for(layouts));
  const auto [x, y] = data();
  return model.fit(x, y, {.batch_size = 8, .epochs = 4, .verbose = 0}).at("loss");
}

/// Returns what one step communicates, as "reduce_scatter model down/output".
std::vector<std::string> exchanges(const Functional& model, const LayoutMap& layouts) {
  model.compile(options_for(layouts));
  const auto [x, y] = data();
  std::vector<std::string> lines;
  for (const CommEntry& entry : model.plan(TensorDataset(x, y), {.batch_size = 8}).collectives) {
    lines.push_back(to_string(entry.op) + " " + entry.dims + " " + entry.place);
  }
  return lines;
}

int64_t count(const std::vector<std::string>& lines, const std::string& line) {
  return std::count(lines.begin(), lines.end(), line);
}

}  // namespace

TEST_CASE("values are placed by path rules, and training is the same") {
  set_random_seed(7);
  const std::vector<double> reference =
      losses(small_graph(), LayoutMap(create_mesh({{"batch", 1}})));
  REQUIRE(reference.back() < reference.front());
  LayoutMap layouts = cut_weights();
  layouts["down/output"] = {"batch", "model"};
  layouts["gate/squares"] = {AxisSpec{"batch", "model"}, unsharded};
  layouts["head/input"] = {"batch", unsharded};
  const std::vector<double> placed = losses(small_graph(), layouts);
  REQUIRE(placed.size() == reference.size());
  for (size_t i = 0; i < reference.size(); ++i)
    CHECK(placed[i] == Approx(reference[i]).epsilon(1e-12));

  const std::vector<std::string> lines = exchanges(small_graph(), layouts);
  CAPTURE(lines);
  // The partial sums of `down` are reduced straight into shards.
  CHECK(count(lines, "reduce_scatter model down/output") == 1);
  CHECK(count(lines, "all_to_all model gate/squares") == 2);  // and back in the backward pass
  CHECK(count(lines, "all_reduce model down") == 0);
}

TEST_CASE("an input's rule reshards a tensor once for several calls of the layer") {
  const auto graph = [] {
    const SymbolicTensor x = Input({8, 6}, {.name = "rows"});
    const LayerHandle attention =
        MultiHeadAttention(2, 4, {.name = "attention", .dtype = "float64"});
    const SymbolicTensor y = attention(std::vector<SymbolicTensor>{x, x, x});
    return Functional({x}, {Dense(3, {.name = "head", .dtype = "float64"})(y)});
  };
  const auto gathers = [&](const LayoutMap& layouts) {
    const Functional model = graph();
    model.compile({.optimizer = "sgd", .loss = "mse", .layouts = layouts});
    const TensorDataset rows(numbers({4, 8, 6}, 1), numbers({4, 8, 3}, 2));
    std::map<std::string, int64_t> gathers_of;
    for (const CommEntry& entry : model.plan(rows, {.batch_size = 4}).collectives) {
      // Except the biases, whose gradients are resharded to their layout.
      if (entry.place.ends_with("/bias")) continue;
      if (entry.op == CommOp::all_gather) ++gathers_of[entry.place];
    }
    return gathers_of;
  };
  LayoutMap layouts(grid());
  layouts.set_data("x", {"batch", "model", unsharded});
  layouts.set_data("y", {"batch", unsharded, unsharded});
  for (const std::string name : {"query", "key", "value"}) {
    layouts["attention/" + name + "/kernel"] = {unsharded, "model", unsharded};
  }
  layouts["attention/attention_output/kernel"] = {"model", unsharded, unsharded};
  const auto without = gathers(layouts);
  CHECK(without.size() >= 3);
  layouts["attention/input"] = {"batch", unsharded, unsharded};
  const auto with = gathers(layouts);
  CAPTURE(with);
  CHECK(with.at("attention/input") == 1);
  CHECK(with.size() == 1);
}

TEST_CASE("released gathers train as kept ones, with more gathers and less memory") {
  const auto rules = [](bool reshard) {
    LayoutMap layouts(grid());
    layouts["up/kernel"] = {unsharded, "model"};
    layouts.add(
        {.match = "down/input", .layout = {"batch", unsharded}, .reshard_after_forward = reshard});
    layouts.add({.match = "head/kernel",
                 .layout = {"model", unsharded},
                 .use = LayoutSpec{nullptr, nullptr},
                 .reshard_after_forward = reshard});
    return layouts;
  };
  const LayoutMap keeping = rules(false), releasing = rules(true);
  const auto seeded = [](const LayoutMap& layouts) {
    set_random_seed(7);
    return losses(small_graph(), layouts);
  };
  CHECK(seeded(releasing) == seeded(keeping));
  const auto gathers = [](const LayoutMap& layouts) {
    const std::vector<std::string> lines = exchanges(small_graph(), layouts);
    return std::pair(count(lines, "all_gather model down/input"),
                     count(lines, "all_gather model head"));
  };
  CHECK(gathers(keeping) == std::pair<int64_t, int64_t>(1, 1));
  CHECK(gathers(releasing) == std::pair<int64_t, int64_t>(2, 2));
  const auto activations = [](const LayoutMap& layouts) {
    const Functional model = small_graph();
    model.compile(options_for(layouts));
    const auto [x, y] = data();
    double bytes = 0;
    const StepPlan plan = model.plan(TensorDataset(x, y), {.batch_size = 8});
    for (const StepPlan::Row& row : plan.layers) bytes += row.activations[0] + row.gathered[0];
    return bytes;
  };
  // Both keep the device's shard of the output of `up`.
  const double rows_of_up = 8 * 4 * 9, kernel = 8 * 7 * 3;
  CHECK(activations(keeping) - activations(releasing) == rows_of_up + kernel);
}

TEST_CASE("summary and plan show the placed values") {
  LayoutMap layouts = cut_weights();
  layouts["down/output"] = {"batch", "model"};
  const Functional model = small_graph();
  model.compile(options_for(layouts));
  CHECK_THAT(summary_text(model.model(), {.line_length = 200, .show_layout = true}, {200}),
             Contains("output (batch, model)"));
  const auto [x, y] = data();
  CHECK_THAT(model.plan(TensorDataset(x, y), {.batch_size = 8}).to_string(),
             Contains("down/output"));
}

TEST_CASE("invalid rules for values are errors of one line") {
  const auto failing = [](const std::string& match, const LayoutSpec& spec) {
    LayoutMap layouts = cut_weights();
    try {
      layouts[match] = spec;
      small_graph().compile(options_for(layouts));
    } catch (const LayoutError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(failing("down/outptu", {"batch", unsharded}) ==
        "[down/outptu] a layout rule matches at least one weight or value of the model. Received: "
        "nearest paths \"down/output\". To fix: correct the rule, remove it or make it optional.");
  CHECK_THAT(failing("down/output_1", {"batch", unsharded}), Contains("matches at least one"));
  CHECK_THAT(failing("gate/squares", {"batch"}),
             Contains("rule \"gate/squares\" has a layout of rank 1, the value has rank 2"));
  CHECK_THAT(failing("down/output", {"bacth", unsharded}), Contains("write \"batch\""));
}

TEST_CASE("inputs and outputs are sharded by name; unknown names are errors") {
  const auto model = [] {
    const SymbolicTensor a = Input({6}, {.name = "a"}), b = Input({6}, {.name = "b"});
    return Functional({a, b},
                      {Dense(3, {.name = "head", .dtype = "float64"})(Concatenate()({a, b}))});
  };
  LayoutMap layouts(grid());
  layouts.set_data("b", {"batch", "model"});
  const TensorDataset rows(
      Examples{.x = {numbers({8, 6}, 1), numbers({8, 6}, 2)}, .y = {numbers({8, 3}, 3)}});
  const auto loss = [&](const LayoutMap& lie) {
    set_random_seed(7);
    const Functional net = model();
    net.compile({.optimizer = "sgd", .loss = "mse", .layouts = lie});
    return net.fit(rows, {.batch_size = 8, .epochs = 2, .verbose = 0}).at("loss").back();
  };
  CHECK(loss(layouts) == Approx(loss(LayoutMap(create_mesh({{"batch", 1}})))).epsilon(1e-12));
  const Batch batch = [&] {
    LayoutMap named = layouts;
    named.set_data_names({"a", "b"}, {"head"});
    std::vector<int64_t> all(8);
    std::iota(all.begin(), all.end(), 0);
    return pack_batch(rows.get(all), named);
  }();
  CHECK(batch.x[0].layout() == Layout({"batch", unsharded}, grid()));
  CHECK(batch.x[1].layout() == Layout({"batch", "model"}, grid()));
  layouts.set_data("c", {"batch", unsharded});
  CHECK_THROWS_WITH(loss(layouts), Contains("[data.c] data layouts are for"));
}

}  // namespace placed_values_test
