#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"

namespace functional_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

std::vector<std::string> paths(const Layer& layer) {
  std::vector<std::string> list;
  for (const Variable& weight : layer.weights()) list.push_back(weight.path());
  return list;
}

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> list;
  for (const auto& layer : model.sublayers()) list.push_back(layer->name());
  return list;
}

at::Tensor value_of(const Variable& weight) { return weight.value().full().clone(); }

DTensor input(const at::Tensor& x) { return pack(x, Layout::replicated(default_mesh(), x.dim())); }

/// Two inputs through one shared layer, a skip connection, two outputs.
Functional two_by_two() {
  const Input a({4}, {.name = "a"}), b({4}, {.name = "b"});
  const Dense shared(4, {.activation = "tanh", .name = "shared"});
  const SymbolicTensor sum = Add({.name = "sum"})({shared(a), shared(b)});
  const SymbolicTensor left = Dense(2, {.name = "left"})(sum);
  const SymbolicTensor right = Dense(3, {.name = "right"})(Concatenate()({sum, a}));
  return Functional({a, b}, {left, right}, {.name = "two"});
}

}  // namespace

TEST_CASE("a functional model computes its graph; shared layers share weights", "[functional]") {
  const Functional model = two_by_two();
  CHECK(model->built());
  CHECK(model->class_name() == "Functional");
  CHECK(paths(model.model()) == std::vector<std::string>{"shared/kernel", "shared/bias",
                                                         "left/kernel", "left/bias", "right/kernel",
                                                         "right/bias"});
  CHECK(model.count_params() == 20 + 10 + 27);
  CHECK(model->output_shapes({{-1, 4}, {-1, 4}}) == Shapes{{-1, 2}, {-1, 3}});
  CHECK(model->output_names() == std::vector<std::string>{"left", "right"});

  const at::Tensor a = at::rand({5, 4}), b = at::rand({5, 4});
  const std::vector<DTensor> y = model.outputs(Inputs{input(a), input(b)});
  const auto w = [&](const char* layer, size_t i) {
    return value_of(model->get_layer(layer)->weights()[i]);
  };
  const at::Tensor sum = a.mm(w("shared", 0)).tanh() + b.mm(w("shared", 0)).tanh();
  CHECK(difference(y[0].full(), sum.mm(w("left", 0)), 1e-5, 1e-6) == "");
  CHECK(difference(y[1].full(), at::cat({sum, a}, 1).mm(w("right", 0)), 1e-5, 1e-6) == "");
}

TEST_CASE("layers of a functional model are in Keras' order", "[functional]") {
  const Functional model = two_by_two();
  CHECK(names(model.model()) ==
        std::vector<std::string>{"a", "b", "shared", "sum", "concatenate", "left", "right"});
}

TEST_CASE("unnamed layers are numbered in creation order", "[functional]") {
  const Input x({3}), y({3});
  const Dense first(3), second(3);
  const Multiply product;
  const Functional model({x, y}, {product({second(y), first(x)})});
  CHECK(first->name() == "dense");
  CHECK(second->name() == "dense_1");
  CHECK(x.node()->layer->name() == "input_layer");
  CHECK(y.node()->layer->name() == "input_layer_1");
  CHECK(model->name() == "functional");
}

TEST_CASE("models nest and prefix their layers' paths", "[functional]") {
  const Sequential block({Input({4}), Dense(4, {.name = "inner"})}, {.name = "block"});
  CHECK(paths(block.model()) == std::vector<std::string>{"inner/kernel", "inner/bias"});
  const Input x({4});
  const Functional inner({x}, {Dense(4, {.name = "deep"})(block(x))}, {.name = "mid"});
  const Input z({4});
  const Functional outer({z}, {Add()({inner(z), block(z)})});
  CHECK(paths(outer.model()).size() == 4);
  CHECK(inner->get_layer("deep")->weights()[0].path() == "mid/deep/kernel");
  const at::Tensor value = at::rand({2, 4});
  const at::Tensor kernel = value_of(block.weights()[0]);
  const at::Tensor deep = value_of(inner->get_layer("deep")->weights()[0]);
  const at::Tensor expected = value.mm(kernel).mm(deep) + value.mm(kernel);
  CHECK(difference(outer(input(value)).full(), expected, 1e-5, 1e-6) == "");
}

TEST_CASE("a submodel can be made from another model's graph", "[functional]") {
  const Input x({6});
  const SymbolicTensor features = Dense(5, {.name = "features"})(x);
  const Functional full({x}, {Dense(2, {.name = "head"})(features)});
  const Functional part({x}, {features});
  CHECK(part.weights().size() == 2);
  CHECK(part.weights()[0].is(full.weights()[0]));
  const at::Tensor value = at::rand({3, 6});
  CHECK(difference(part(input(value)).full(), value.mm(value_of(part.weights()[0])), 1e-5, 1e-6) ==
        "");
}

TEST_CASE("weights' initial values follow from their final path", "[functional]") {
  const auto drawn = [](bool nested) {
    const Sequential block({Input({4}), Dense(3, {.name = "d"})}, {.name = "block"});
    if (nested) {
      const Input x({4});
      const Functional outer({x}, {block(x)});
      return value_of(block.weights()[0]);
    }
    return value_of(block.weights()[0]);
  };
  CHECK_FALSE(drawn(true).equal(drawn(false)));
  CHECK(drawn(true).equal(drawn(true)));
}

TEST_CASE("a functional model trains like the same Sequential", "[functional]") {
  const LayoutMap layouts = test::small_layouts("model", create_mesh({{"batch", 2}, {"model", 2}}));
  const auto train = [&](const ModelHandle& model) {
    model.compile(test::small_compile(layouts));
    return model.fit(test::small_data(40), {.batch_size = 16, .epochs = 2, .verbose = 0});
  };
  const Sequential chain = test::small_model();
  const Sequential same = test::small_model();
  const Input x({18}, {.dtype = "float64"});
  SymbolicTensor y = x;
  for (const auto& layer : same->sublayers()) y = LayerHandle(layer)(y);
  const Functional graph({x}, {y});
  CHECK(train(chain).at("loss") == train(graph).at("loss"));
}

TEST_CASE("invalid graphs and calls are refused in one line", "[functional]") {
  const Input a({4}, {.name = "a"}), b({4}, {.name = "b"});
  const SymbolicTensor sum = Add()({a, b});
  CHECK_THROWS_WITH(Functional({a}, {sum}), Contains("another Input of shape (-1, 4)"));
  CHECK_THROWS_WITH(Functional({a, a}, {a}), Contains("one Input twice"));
  CHECK_THROWS_WITH(Functional({sum}, {sum}), Contains("an output of Add"));
  CHECK_THROWS_WITH(Functional({}, {sum}), Contains("0 inputs"));
  CHECK_THROWS_WITH(Functional({a}, {SymbolicTensor()}), Contains("an empty tensor"));
  const Dense one(3, {.name = "same"}), two(3, {.name = "same"});
  CHECK_THROWS_WITH(Functional({a}, {Add()({one(a), two(a)})}),
                    Contains("two layers named \"same\""));
  CHECK_THROWS_WITH(Input({0}), Contains("(0,)"));
  CHECK_THROWS_WITH(Dense(3)(SymbolicTensor()), Contains("empty SymbolicTensor"));
  const Functional model = two_by_two();
  CHECK_THROWS_WITH(model(input(at::rand({2, 4}))), Contains("2 inputs"));
  CHECK_THROWS_WITH(model.outputs(Inputs{input(at::rand({2, 4})), input(at::rand({2, 5}))}),
                    Contains("[InputLayer b]") && Contains("(2, 5)"));
  CHECK_THROWS_WITH(model(Inputs{input(at::rand({2, 4})), input(at::rand({2, 4}))}),
                    Contains("2 outputs"));
}

}  // namespace functional_test
