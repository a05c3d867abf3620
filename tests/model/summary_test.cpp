#include <algorithm>
#include <functional>
#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace summary_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

ModelHandle mlp() {
  return Sequential(
      {Input({28, 28}), Flatten(), Dense(128, {.activation = "relu"}), Dropout(0.2), Dense(10)},
      {.name = "mnist_mlp"});
}

ModelHandle unbuilt() { return Sequential({Flatten(), Dense(128)}); }

ModelHandle frozen() {
  return Sequential(
      {Input({7}), Dense(1000, {.name = "frozen", .trainable = false}), Dropout(0.5), Dense(3)});
}

ModelHandle long_names() {
  return Sequential(
      {Input({5}), Dense(4, {.name = "a_very_long_name_of_a_layer_that_does_not_fit_in"}),
       Dense(1234567, {.name = "wide"})},
      {.name = "[red]odd name"});
}

ModelHandle two_inputs() {
  const Input a({4}, {.name = "a"}), b({4}, {.name = "b"});
  const Dense shared(4, {.name = "shared"});
  const SymbolicTensor from_a = shared(a), from_b = shared(b);
  const SymbolicTensor both = Add({.name = "add"})({from_a, from_b});
  const SymbolicTensor left = Dense(2, {.name = "left"})(both);
  const SymbolicTensor joined = Concatenate({.name = "join"})({both, a, b});
  const SymbolicTensor right = Dense(3, {.name = "right"})(joined);
  return Functional({a, b}, {left, right}, {.name = "two"});
}

ModelHandle automatic_names() {
  const Input x({3}), y({3});
  const Multiply product;
  const Dense first(3), second(3);
  return Functional({x, y}, {product({first(x), second(y)})});
}

ModelHandle chain() {
  const Input x({6}, {.name = "in"});
  return Functional({x}, {Dense(2, {.name = "out"})(Reshape({2, 3})(x))}, {.name = "chain"});
}

ModelHandle nested() {
  const Sequential block(
      {Input({4}), Dense(4, {.name = "inner"}), Activation("tanh", {.name = "act"})},
      {.name = "block"});
  const Input x({4}, {.name = "x"});
  return Functional({x}, {Add({.name = "sum"})({block(x), x})}, {.name = "outer"});
}

ModelHandle compiled() {
  const ModelHandle model = mlp();
  model.compile({.optimizer = "adam", .loss = "mse"});
  model->optimizer()->build(model.trainable_weights());
  return model;
}

struct Case {
  std::function<ModelHandle()> make;
  SummaryOptions options = {};
};

const std::map<std::string, Case> cases = {
    {"mlp", {mlp}},
    {"unbuilt", {unbuilt}},
    {"frozen", {frozen, {.show_trainable = true}}},
    {"long_names", {long_names}},
    {"long_names_60", {long_names, {.line_length = 60}}},
    {"two_inputs", {two_inputs}},
    {"two_inputs_trainable", {two_inputs, {.show_trainable = true}}},
    {"automatic_names", {automatic_names}},
    {"chain", {chain}},
    {"nested", {nested}},
    {"nested_expanded", {nested, {.expand_nested = true}}},
    {"compiled", {compiled}},
    {"positions", {mlp, {.positions = {0.3, 0.7, 1.0}}}},
    {"layer_range", {mlp, {.layer_range = {"dense", "dropout"}}}},
};

}  // namespace

TEST_CASE("summary is byte for byte what Keras prints", "[summary]") {
  const Json golden = read_json_file(test::golden_path("keras_summary.json").string());
  CHECK(golden.size() == cases.size());
  const std::map<std::string, Terminal> terminals = {
      {"pipe", {80, false}}, {"80", {80, true}}, {"120", {120, true}}};
  for (const auto& [name, variants] : golden.items()) {
    const Case& made = cases.at(name);
    for (const auto& [variant, terminal] : terminals) {
      CAPTURE(name, variant);
      const std::string text = summary_text(made.make().model(), made.options, terminal);
      CHECK(text == variants.at(variant).get<std::string>());
    }
  }
}

TEST_CASE("summary can show layouts and bytes per device", "[summary]") {
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}));
  layouts["dense/kernel"] = {unsharded, "model"};
  const ModelHandle model = mlp();
  model.compile({.optimizer = "adam", .loss = "mse", .layouts = layouts});
  model->place_weights(layouts);
  model->optimizer()->build(model.trainable_weights());
  const SummaryOptions options{.show_layout = true};
  const std::string text = summary_text(model.model(), options, {160, false});
  CHECK_THAT(text, Contains("kernel (unsharded, model), "));
  CHECK_THAT(text, Contains("bias (model)"));
  // Sharded over the model dimension: 784 × 128 and 128; replicated: 128 × 10 and 10; float32.
  const double weights = 4.0 * (784 * 64 + 64 + 1290);
  CHECK_THAT(text, Contains(" Bytes per device: " + readable_bytes(3 * weights) + " (weights " +
                            readable_bytes(weights) + ", optimizer " + readable_bytes(2 * weights) +
                            ")\n Mesh: batch=2, model=2\n"));
  CHECK_THAT(text, !Contains("Peak"));
  const StepPlan plan =
      model->plan(TensorDataset(at::zeros({8, 28, 28}), at::zeros({8, 10})), {.batch_size = 8});
  double most = 0;
  for (const StepPlan::Peak& peak : plan.peaks) most = std::max(most, peak.total());
  CHECK_THAT(summary_text(model.model(), {.plan = plan}, {160, false}),
             Contains(" Peak of a training step: " + readable_bytes(most) + " on device "));
  const Sequential shapes({Input({4}), Flatten()});
  CHECK_THAT(summary_text(shapes.model(), options, {160, false}), !Contains("device"));
}

TEST_CASE("a subclassed model's summary shows the shapes its layers were built for", "[summary]") {
  class Two final : public Model {
   public:
    Two() : Model({.name = "two"}) {}
    std::string class_name() const override { return "Two"; }

   protected:
    DTensor call(const Inputs& inputs, const CallContext& context) override {
      return second_(first_(inputs[0], context), context);
    }

   private:
    LayerHandle first_ = track(Dense(4, {.name = "first"}));
    LayerHandle second_ = track(Dense(2, {.name = "second"}));
  };
  Two model;
  CHECK_THAT(summary_text(model, {}, {80, false}), Contains("0 (unbuilt)"));
  model.build({{-1, 3}});
  const std::string text = summary_text(model, {}, {80, false});
  CHECK_THAT(text, Contains("first (Dense)                   │ (None, 4)              │"));
  CHECK_THAT(text, Contains(" Total params: 26 (104.00 B)"));
}

TEST_CASE("summary's options are checked", "[summary]") {
  const ModelHandle model = mlp();
  const auto text = [&](const SummaryOptions& options) {
    return summary_text(model.model(), options, {80, false});
  };
  CHECK_THROWS_WITH(text({.line_length = 20}), Contains("line_length 20"));
  CHECK_THROWS_WITH(text({.positions = {0.5, 1.0}}), Contains("3 ascending numbers"));
  CHECK_THROWS_WITH(text({.layer_range = {"dense", "nothing"}}), Contains("\"dropout\""));
  CHECK_THROWS_WITH(text({.layer_range = {"["}}), Contains("layer_range"));
}

}  // namespace summary_test
