#include <tessera/tessera.hpp>

#include <cmath>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/cpu_time.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"

namespace sequential_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

std::vector<std::string> paths(const ModelHandle& model) {
  std::vector<std::string> list;
  for (const Variable& weight : model.weights()) list.push_back(weight.path());
  return list;
}

DTensor input(const at::Tensor& full) {
  return pack(full, Layout::replicated(default_mesh(), full.dim()));
}

/// A user-defined layer: x times one trained number.
class ScaleLayer : public Layer {
 public:
  explicit ScaleLayer(const LayerOptions& options = {}) : Layer(options) {}
  std::string class_name() const override { return "MyScale"; }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }

 protected:
  void make_weights(const Shapes&) override { factor_ = add_weight("factor", {}, "ones"); }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0] * read(factor_);
  }

 private:
  Variable factor_;
};

}  // namespace

TEST_CASE("unnamed layers are numbered within the root model, in order of addition") {
  const Sequential block({Dense(4), Dense(4, {.name = "out"})}, {.name = "block"});
  const Sequential model({Dense(3), Flatten(), Dense(3, {.use_bias = false}), block,
                          Activation("relu"), Dense(2, {.name = "logits"}), Dense(2)});
  model.build({-1, 5});
  CHECK(paths(model) == std::vector<std::string>{
                            "dense/kernel", "dense/bias", "dense_1/kernel", "block/dense_2/kernel",
                            "block/dense_2/bias", "block/out/kernel", "block/out/bias",
                            "logits/kernel", "logits/bias", "dense_3/kernel", "dense_3/bias"});
  CHECK(model->get_layer("dense_1")->class_name() == "Dense");
  CHECK(model->get_layer("flatten")->weights().empty());
  CHECK_THROWS_WITH(model->get_layer("dense_9"), Contains("\"dense_9\""));
  CHECK(model.count_params() == 5 * 3 + 3 + 9 + 12 + 4 + 16 + 4 + 8 + 2 + 4 + 2);
  const Sequential again({Dense(3)});
  again.build({-1, 5});
  CHECK(paths(again)[0] == "dense/kernel");
}

TEST_CASE("a nested model's layers have its prefix for layout rules") {
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}));
  layouts["block/.*/kernel"] = {unsharded, "model"};
  const Sequential block({Dense(4), Dense(6)}, {.name = "block"});
  const Sequential model({Dense(3), block});
  model.compile({.optimizer = SGD(0.1), .loss = "mse", .layouts = layouts});
  model.fit(TensorDataset(at::rand({8, 5}), at::rand({8, 6})), {.batch_size = 4, .verbose = 0});
  CHECK(model.weights()[0].layout().describe() == "(unsharded, unsharded)");
  CHECK(model.weights()[2].value().layout().describe() == "(unsharded, model)");
  CHECK(model.weights()[3].value().layout().describe() == "(model)");
}

TEST_CASE("a layer used twice shares its weights, also if copied before it is built") {
  const Dense shared(4, {.kernel_initializer = GlorotUniform({.seed = 1})});
  const LayerHandle copy = shared;  // NOLINT: the copy is the point
  const Sequential model({shared, Activation("tanh"), copy, shared});
  model.build({-1, 4});
  CHECK(paths(model) == std::vector<std::string>{"dense/kernel", "dense/bias"});
  CHECK(copy->weights()[0].is(shared->weights()[0]));
  CHECK(model.count_params() == 20);

  const at::Tensor x = at::rand({3, 4});
  const at::Tensor kernel = shared->weights()[0].value().full().clone();
  const at::Tensor expected = x.mm(kernel).tanh().mm(kernel).mm(kernel);
  CHECK(difference(model(input(x)).full(), expected, 1e-5, 1e-6) == "");

  // The gradient is the sum over all three uses: compared with differences in one element.
  const auto loss = [&](double shift) {
    at::Tensor moved = kernel.to(at::kDouble);
    moved[1][2] += shift;
    const at::Tensor wide = x.to(at::kDouble);
    return wide.mm(moved).tanh().mm(moved).mm(moved).square().sum().item<double>();
  };
  GradientTape tape;
  const DTensor value = ops::sum(ops::square(model(input(x))));
  const at::Tensor gradient = tape.gradient(value, shared->weights()[0].value()).full();
  CHECK(gradient[1][2].item<double>() == Approx((loss(1e-5) - loss(-1e-5)) / 2e-5).epsilon(1e-4));
}

TEST_CASE("a model that is called directly builds itself") {
  const Sequential model({Dense(4, {.activation = "relu"}), Dense(2)});
  CHECK(model(input(at::rand({3, 5}))).shape() == Shape{3, 2});
  CHECK(paths(model)[2] == "dense_1/kernel");
  CHECK_THROWS_WITH(model(input(at::rand({3, 6}))),
                    Contains("[Dense dense]") && Contains("(3, 6)"));
  CHECK_THROWS_WITH(model.add(Dense(3)), Contains("before the model is built"));
}

TEST_CASE("layers can be added one by one, and models frozen") {
  const Sequential model({}, {.name = "mine"});
  model.add(Dense(4));
  model.add(Dense(2, {.trainable = false}));
  model.build({-1, 3});
  CHECK(model.weights().size() == 4);
  CHECK(model.trainable_weights().size() == 2);
  model->set_trainable(false);
  CHECK(model.trainable_weights().empty());
  const Json config = model->config();
  CHECK(config.at("name") == "mine");
  CHECK(config.at("layers")[1].at("class_name") == "Dense");
  CHECK(config.at("layers")[1].at("config").at("units") == 2);
}

TEST_CASE("the last layer is popped and another takes its place") {
  const Sequential model({Input({4}), Dense(3), Dense(2, {.name = "scores"})});
  const at::Tensor frozen = model->weights()[0].value().full().clone();
  const LayerHandle scores = model.pop();
  CHECK(scores->name() == "scores");
  CHECK(paths(model) == std::vector<std::string>{"dense/kernel", "dense/bias"});
  model.add(Dense(5, {.name = "others"}));
  CHECK(model->symbolic_outputs()[0].shape() == Shape{-1, 5});
  CHECK(model(input(at::zeros({2, 4}))).shape() == Shape{2, 5});
  CHECK(model->weights()[0].value().full().equal(frozen));
  CHECK(model->weights()[2].path() == "others/kernel");
  model.pop();
  model.pop();
  CHECK(model->symbolic_outputs()[0].shape() == Shape{-1, 4});
  CHECK_THROWS_WITH(model.pop(), Contains("there must be a layer to remove. Received: no layers"));

  const Sequential plain({Dense(3), Dense(2)});
  plain.pop();
  CHECK(plain(input(at::zeros({2, 4}))).shape() == Shape{2, 3});
  plain.compile({.optimizer = "sgd", .loss = "mean_squared_error"});
  CHECK_THROWS_WITH(plain.pop(), Contains("layers must be removed before compile(). Received: a "
                                          "compiled model. To fix: load or make it without"));
}

TEST_CASE("layers added one by one have names as if all were named together") {
  const Sequential inner({Dense(2), Dense(2)});
  const Dense own(2, {.name = "dense"});
  const Sequential model({Input({2}), Dense(2), Dense(2), Flatten(), inner, Dense(2), own});
  std::vector<std::string> names;
  for (const LayerHandle& layer : model.layers()) names.push_back(layer->name());
  CHECK(names == std::vector<std::string>{"dense_3", "dense_1", "flatten", "sequential", "dense_2",
                                          "dense"});
  CHECK(inner->weights()[2].path() == "sequential/dense_1/kernel");
  CHECK(model.pop()->name() == "dense");
  model.add(Dense(2));
  CHECK(model.layers().back()->name() == "dense");
  model.add(model.layers()[1]);
  CHECK(model.layers().back()->name() == "dense_1");
  // Another model gives a layer another name.
  const Sequential other({Input({2}), model.layers()[4], Dense(2, {.name = "dense_2"})});
  CHECK(other.layers()[0]->name() == "dense");
  model.add(Dense(2));
  names.clear();
  for (const Variable& weight : model.weights()) names.push_back(weight.path());
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("a layer is added in the same time however many there are") {
  const Sequential model({Input({1})});
  const auto add = [&] {
    for (int i = 0; i < 60; ++i) model.add(Dense(1));
  };
  // Three times 60 layers at the beginning, and three times 60 after 1,500 others.
  const double few = test::cpu_seconds(add);
  for (int i = 0; i < 1500; ++i) model.add(Dense(1));
  const double many = test::cpu_seconds(add);
  CHECK(many < 3 * few);
  CHECK(model.layers().back()->name() == "dense_1859");
}

TEST_CASE("frozen weights stay unchanged") {
  const Sequential model({Dense(4, {.name = "frozen", .trainable = false}), Dense(2)});
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  model.build({-1, 3});
  const std::vector<at::Tensor> before = test::full_weights(model);
  model.fit(TensorDataset(at::rand({8, 3}), at::rand({8, 2})), {.batch_size = 4, .verbose = 0});
  const std::vector<at::Tensor> after = test::full_weights(model);
  CHECK(before[0].equal(after[0]));
  CHECK(before[1].equal(after[1]));
  CHECK_FALSE(before[2].equal(after[2]));
}

TEST_CASE("two layers of one name are refused") {
  const Sequential model({Dense(4, {.name = "a"}), Dense(4, {.name = "a"})}, {.name = "mine"});
  CHECK_THROWS_WITH(model.build({-1, 4}), Contains("two layers named \"a\""));
}

TEST_CASE("a model without an Input takes integers as one with an Input does") {
  const at::Tensor pixels = at::randint(0, 255, {6, 4, 4, 1}, at::kByte);
  const Sequential with({Input({4, 4, 1}), Conv2D(3, 3), Flatten(), Dense(2)});
  const Sequential without({Conv2D(3, 3), Flatten(), Dense(2)});
  const at::Tensor expected = with.predict(pixels);
  CHECK(without.predict(pixels).sizes() == expected.sizes());
  without.set_weights(with.get_weights());
  CHECK(difference(without.predict(pixels), expected, 1e-6, 1e-5) == "");
  CHECK(Sequential({Flatten(), Dense(3)}).predict(pixels).size(1) == 3);
}

TEST_CASE("user-defined layers train like any other") {
  const Sequential model(
      {make_layer<ScaleLayer>(), make_layer<ScaleLayer>(LayerOptions{.name = "s"})});
  model.compile({.optimizer = SGD(0.1), .loss = "mse", .mesh = create_mesh({{"batch", 2}})});
  const at::Tensor x = at::ones({8, 1});
  const History history =
      model.fit(TensorDataset(x, 3 * x), {.batch_size = 4, .epochs = 20, .verbose = 0});
  CHECK(paths(model) == std::vector<std::string>{"my_scale/factor", "s/factor"});
  CHECK(history.at("loss").back() < 1e-6);
  CHECK(model.weights()[0].value().item() == Approx(std::sqrt(3.0)).epsilon(1e-3));
}

}  // namespace sequential_test
