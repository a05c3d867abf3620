#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"

namespace subclass_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

/// A residual classifier in the subclassing style.
class Residual final : public Model {
 public:
  Residual() : Model({.name = "residual"}) {}
  std::string class_name() const override { return "Residual"; }
  int calls = 0;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    ++calls;
    const DTensor x = first_(inputs[0], context);
    return head_(drop_(x + second_(x, context), context), context);
  }

 private:
  LayerHandle first_ = track(Dense(12, {.activation = "relu", .name = "first"}));
  LayerHandle second_ = track(Dense(12, {.name = "second"}));
  LayerHandle drop_ = track(Dropout(0.25));
  LayerHandle head_ = track(Dense(5));
};

/// Reads numbers while it computes, which no plan can follow.
class Reading final : public Model {
 public:
  Reading() : Model(LayerOptions()) {}
  std::string class_name() const override { return "Reading"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    const double largest = ops::max(inputs[0]).full().item<double>();
    return dense_(largest > 1e6 ? inputs[0] * 0.5 : inputs[0], context);
  }

 private:
  LayerHandle dense_ = track(Dense(2, {.name = "d"}));
};

/// Splits its input into two outputs.
class Halves final : public Model {
 public:
  Halves() : Model(LayerOptions()) {}
  std::string class_name() const override { return "Halves"; }

 protected:
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override {
    const DTensor y = dense_(inputs[0], context);
    return {ops::slice(y, 1, 0, 2), ops::slice(y, 1, 2, 2)};
  }

 private:
  LayerHandle dense_ = track(Dense(4));
};

ModelHandle residual() { return ModelHandle(std::make_shared<Residual>()); }

}  // namespace

TEST_CASE("a subclassed model is built by planning a call", "[subclass]") {
  Residual model;
  model.build({{-1, 7}});
  CHECK(model.calls == 1);
  CHECK(model.built());
  std::vector<std::string> paths;
  for (const Variable& weight : model.weights()) {
    paths.push_back(weight.path());
    CHECK_FALSE(weight.has_value());
  }
  CHECK(paths == std::vector<std::string>{"first/kernel", "first/bias", "second/kernel",
                                          "second/bias", "dense/kernel", "dense/bias"});
  CHECK(model.output_shape({{-1, 7}}) == Shape{-1, 5});
  CHECK(model.output_shape({{9, 7}}) == Shape{9, 5});
  CHECK(model.count_params() == 7 * 12 + 12 + 12 * 12 + 12 + 12 * 5 + 5);
}

TEST_CASE("a subclassed model follows layout rules from its first step", "[subclass]") {
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}));
  layouts["(first|second)/kernel"] = {unsharded, "model"};
  const ModelHandle model = residual();
  model.compile({.optimizer = Adam(0.01),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  at::manual_seed(1);
  const TensorDataset data(at::rand({48, 7}), at::arange(48).remainder(5));
  const History history = model.fit(data, {.batch_size = 16, .epochs = 2, .verbose = 0});
  CHECK(model.weights()[0].value().layout().describe() == "(unsharded, model)");
  CHECK(model.weights()[1].value().layout().describe() == "(model)");
  CHECK(history.at("loss")[1] < history.at("loss")[0]);
  LayoutMap wrong(create_mesh({{"batch", 2}}));
  wrong["third/kernel"] = {unsharded, "batch"};
  const ModelHandle other = residual();
  other.compile({.optimizer = "sgd", .loss = "mse", .layouts = wrong});
  CHECK_THROWS_WITH(other.fit(data, {.verbose = 0}), Contains("third/kernel"));
}

TEST_CASE("a model that reads numbers is built by a call on zeros", "[subclass]") {
  Reading model;
  model.build({{-1, 3}});
  CHECK(model.weights().size() == 2);
  CHECK(model.weights()[0].path() == "d/kernel");
}

TEST_CASE("a subclassed model may have several outputs", "[subclass]") {
  Halves model;
  CHECK(model.output_shapes({{-1, 3}}) == Shapes{{-1, 2}, {-1, 2}});
  const DTensor x = pack(at::rand({6, 3}), Layout::replicated(default_mesh(), 2));
  const std::vector<DTensor> y = model.outputs({x});
  CHECK(y[1].shape() == Shape{6, 2});
  CHECK_THROWS_WITH(model(x), Contains("2 outputs"));
}

TEST_CASE("a subclassed model works inside a functional graph", "[subclass]") {
  const ModelHandle inner = residual();
  const Input x({7});
  const Functional outer({x}, {Dense(2, {.name = "top"})(inner(x))});
  CHECK(outer.weights().size() == 8);
  CHECK(outer.weights()[0].path() == "residual/first/kernel");
  CHECK(outer.weights()[4].path() == "residual/dense/kernel");
  const DTensor value = pack(at::rand({4, 7}), Layout::replicated(default_mesh(), 2));
  CHECK(outer(value).shape() == Shape{4, 2});
}

TEST_CASE("a class without call() throws", "[subclass]") {
  class Empty final : public Model {
   public:
    Empty() : Model(LayerOptions()) {}
    std::string class_name() const override { return "Empty"; }
  };
  Empty model;
  CHECK_THROWS_WITH(model.build({{-1, 3}}), Contains("defines call()"));
}

TEST_CASE("errors inside a layer name the layer", "[subclass]") {
  class Bad final : public Layer {
   public:
    Bad() : Layer({.name = "bad"}) {}
    std::string class_name() const override { return "Bad"; }
    Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }

   protected:
    DTensor call(const Inputs& inputs, const CallContext&) override {
      return ops::matmul(inputs[0], inputs[0]);
    }
  };
  const Sequential model({make_layer<Bad>()});
  const DTensor x = pack(at::rand({2, 3}), Layout::replicated(default_mesh(), 2));
  CHECK_THROWS_AS(model(x), ShapeError);
  CHECK_THROWS_WITH(model(x), Contains("[Bad bad, matmul]"));
}

}  // namespace subclass_test
