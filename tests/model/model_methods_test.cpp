#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/small_model.hpp"

namespace model_methods_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> paths(const ModelHandle& model) {
  std::vector<std::string> list;
  for (const Variable& weight : model.weights()) list.push_back(weight.path());
  return list;
}

DTensor input(const at::Tensor& x) { return pack(x, Layout::replicated(default_mesh(), x.dim())); }

/// A model with a weight of its own beside its layers.
class Scaled final : public Model {
 public:
  Scaled() : Model({.name = "scaled"}) {}
  std::string class_name() const override { return "Scaled"; }

 protected:
  void make_weights(const Shapes& inputs) override {
    scale_ = add_weight("scale", {2}, Ones());
    Model::make_weights(inputs);
  }
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return dense_(inputs[0], context) * read(scale_);
  }

 private:
  LayerHandle dense_ = track(Dense(2));
  Variable scale_;
};

}  // namespace

TEST_CASE("layers are found by name and by index", "[model]") {
  const Sequential model({Input({4}), Dense(3), Dense(2, {.name = "head"})});
  CHECK(model.layers().size() == 2);
  CHECK(model.get_layer(1).layer() == model.get_layer("head").layer());
  CHECK_THROWS_WITH(model.get_layer(2), Contains("2 layers") && Contains("Received: 2."));
  CHECK_THROWS_WITH(model.get_layer(-1), Contains("Received: -1."));
  CHECK_THROWS_WITH(model.get_layer("heat"), Contains("\"head\""));
}

TEST_CASE("weights are read and set as tensors", "[model]") {
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}));
  layouts["dense/kernel"] = {unsharded, "model"};
  const Sequential model({Input({4}), Dense(6)});
  model.compile({.loss = "mse", .layouts = layouts});
  const at::Tensor kernel = at::rand({4, 6}), bias = at::rand({6});
  model.set_weights({kernel.to(at::kDouble), bias});
  const std::vector<at::Tensor> values = model.get_weights();
  REQUIRE(values.size() == 2);
  CHECK(values[0].equal(kernel));
  CHECK(values[1].equal(bias));
  CHECK(model.weights()[0].value().layout().describe() == "(unsharded, model)");
  CHECK_THROWS_WITH(model.set_weights({kernel}), Contains("2 weights") && Contains("1 values"));
  CHECK_THROWS_WITH(model.set_weights({at::zeros({4, 6}), at::rand({5})}),
                    Contains("dense/bias] the value must have shape (6,). Received: (5,)"));
  CHECK(model.get_weights()[0].equal(kernel));
  CHECK_THROWS_AS(Sequential({Dense(3)}).set_weights({}), StateError);
}

TEST_CASE("a model saves and loads its weights, and is described as JSON", "[model]") {
  const test::TempFolder folder;
  const Sequential model({Input({4}), Dense(3)});
  model.save_weights(folder / "w.safetensors");
  const ModelHandle again = model_from_json(model.to_json());
  again.set_weights({at::zeros({4, 3}), at::zeros({3})});
  again.load_weights(folder / "w.safetensors");
  CHECK(again.get_weights()[0].equal(model.get_weights()[0]));
  const Sequential other({Input({4}), Dense(3, {.name = "elsewhere"})});
  CHECK_THROWS_WITH(other.load_weights(folder / "w.safetensors"), Contains("no name like it"));
  CHECK(model.to_json() == model_to_json(model.model()));
  CHECK_THAT(model.to_json(), Contains("\"input_layer\""));
}

TEST_CASE("a model's own weights count, are placed and trained", "[model]") {
  const ModelHandle model(std::make_shared<Scaled>());
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}));
  layouts["scaled/scale"] = {"model"};
  model.compile({.optimizer = SGD(0.1), .loss = "mse", .layouts = layouts});
  const at::Tensor x = at::rand({8, 3}), y = at::rand({8, 2});
  const StepPlan plan = model.plan(DatasetHandle(x, y), {.batch_size = 4});
  CHECK(plan.layers[1].path == "scaled");
  CHECK(plan.layers[1].weights[0] == 4);
  model.fit(x, y, {.verbose = 0});
  CHECK(paths(model) == std::vector<std::string>{"scaled/scale", "dense/kernel", "dense/bias"});
  CHECK(model.weights()[0].layout().describe() == "(model)");
  CHECK_FALSE(model.get_weights()[0].equal(at::ones({2})));
  const Input outer({3});
  const Functional nested({outer}, {LayerHandle(model)(outer)});
  CHECK(paths(nested)[1] == "scaled/dense/kernel");
}

TEST_CASE("names given by another model are replaced", "[model]") {
  const Input x({4});
  const Dense one(4), two(4);
  const Sequential first({Input({4}), one}), second({Input({4}), two});
  const Functional both({x}, {second(first(x))});
  CHECK(paths(both) == std::vector<std::string>{"sequential/dense/kernel", "sequential/dense/bias",
                                                "sequential_1/dense/kernel",
                                                "sequential_1/dense/bias"});
  const Dense own(4, {.name = "dense"}), other(4);
  const Sequential alone({Input({4}), other});
  const Functional mixed({x}, {other(own(x))});
  CHECK(paths(mixed)[2] == "dense_1/kernel");
  CHECK(alone.layers()[0]->name() == "dense_1");
}

TEST_CASE("a model that is not trainable freezes its layers", "[model]") {
  const Sequential model({Dense(3)}, {.trainable = false});
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  model.build({-1, 4});
  CHECK(model.trainable_weights().empty());
  const std::vector<at::Tensor> before = model.get_weights();
  const at::Tensor x = at::rand({8, 4}), y = at::rand({8, 3});
  const History history = model.fit(x, y, {.verbose = 0});
  CHECK(history.at("loss").size() == 1);
  CHECK(model.get_weights()[0].equal(before[0]));
  model.set_trainable(true);
  CHECK(model.trainable());
  CHECK(model.trainable_weights().size() == 2);
}

TEST_CASE("an Input checks shapes and casts integers", "[model]") {
  const Input x({2, 2});
  const std::vector<ModelHandle> models = {Sequential({Input({2, 2}), Flatten(), Dense(3)}),
                                           Functional({x}, {Dense(3)(Flatten()(x))})};
  for (const ModelHandle& model : models) {
    CHECK(model(input(at::ones({5, 2, 2}, at::kByte))).dtype() == at::kFloat);
    CHECK_THROWS_WITH(model(input(at::rand({5, 4}))),
                      Contains("the input must have shape (-1, 2, 2). Received: (5, 4)"));
    CHECK_THROWS_WITH(model(Inputs{}), Contains("0"));
    const DTensor value = input(at::rand({5, 2, 2}));
    CHECK_THROWS_WITH(model(Inputs{value, value}), Contains("2"));
  }
  CHECK_THROWS_WITH(Sequential({Input({2}), Input({2})}), Contains("a second one"));
}

TEST_CASE("invalid models are refused", "[model]") {
  const Sequential inner({Dense(2)});
  const Sequential outer({inner});
  CHECK_THROWS_WITH(inner.add(inner), Contains("cannot contain itself"));
  CHECK_THROWS_WITH(inner.add(outer), Contains("cannot contain itself"));
  const Sequential empty({Flatten()}, {.name = "shapes"});
  empty.compile({.optimizer = "sgd", .loss = "mse"});
  CHECK_THROWS_WITH(empty.fit(at::rand({4, 2}), at::rand({4, 2}), {.verbose = 0}),
                    Contains("[model shapes]") && Contains("track()"));
}

TEST_CASE("a wrong dtype names the layer that has a name", "[model]") {
  CHECK_THROWS_WITH(Dense(3, {.name = "logits", .dtype = "float33"}),
                    Contains("layer logits") && Contains("\"float33\""));
}

}  // namespace model_methods_test
