// Calls and build() of compiled models, which place the weights as fit() does.
#include <tessera/tessera.hpp>

#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace compiled_call_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

/// A subclassed model; with `reads`, no plan can follow its call.
class Net final : public Model {
 public:
  explicit Net(bool reads) : Model(LayerOptions()), reads_(reads) {}
  std::string class_name() const override { return "Net"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    if (reads_) ops::max(inputs[0]).full();
    return logits_(dense_(inputs[0], context), context);
  }

 private:
  bool reads_;
  LayerHandle dense_ = track(Dense(6, {.activation = "relu", .name = "dense"}));
  LayerHandle logits_ = track(Dense(2, {.name = "logits"}));
};

using Make = std::function<ModelHandle()>;

std::vector<Make> makes() {
  return {[] {
            return Sequential(
                {Dense(6, {.activation = "relu", .name = "dense"}), Dense(2, {.name = "logits"})});
          },
          [] { return ModelHandle(std::make_shared<Net>(false)); },
          [] { return ModelHandle(std::make_shared<Net>(true)); }};
}

/// Layouts of one device, and of several with a rule for the first kernel.
std::vector<LayoutMap> layout_maps() {
  std::vector<LayoutMap> all = {LayoutMap(create_mesh({{"batch", 1}}))};
  for (const MeshDims& dims : {MeshDims{{"batch", 3}}, MeshDims{{"batch", 2}, {"model", 2}}}) {
    LayoutMap layouts(create_mesh(dims));
    layouts["dense/kernel"] = {unsharded, dims.back().first};
    all.push_back(layouts);
  }
  return all;
}

const at::Tensor& rows() {
  static const at::Tensor x = at::linspace(-1, 2, 20).view({5, 4});
  return x;
}

DTensor on(const Mesh& mesh) { return pack(rows(), Layout::batch_sharded(mesh, "batch", 2)); }

at::Tensor expected_outputs(const ModelHandle& model) {
  const std::vector<at::Tensor> w = model.get_weights();
  return at::addmm(w[3], at::addmm(w[1], rows(), w[0]).relu(), w[2]);
}

}  // namespace

TEST_CASE("a call or build() of a compiled model places its weights") {
  std::vector<at::Tensor> first;
  for (const Make& make : makes()) {
    for (const LayoutMap& layouts : layout_maps()) {
      for (const bool builds : {false, true}) {
        CAPTURE(layouts.mesh().describe(), builds);
        const ModelHandle model = make();
        model.compile({.optimizer = Adam(0.1), .loss = "mse", .layouts = layouts});
        if (builds) model.build({-1, 4});
        const DTensor y = model(on(layouts.mesh()));
        for (const Variable& weight : model.weights()) {
          CHECK(weight.value().mesh() == layouts.mesh());
        }
        CHECK(model.weights()[0].layout() == layouts.find("dense/kernel", {4, 6}).layout);
        CHECK(model->optimizer()->built());
        CHECK(difference(y.full(), expected_outputs(model), 1e-5, 1e-6) == "");
        // The weights are the same on every mesh, and training goes on with them.
        if (first.empty()) first = model.get_weights();
        for (size_t w = 0; w < first.size(); ++w) {
          CHECK(difference(model.get_weights()[w], first[w]) == "");
        }
        model.fit(rows(), at::ones({5, 2}), {.verbose = 0});
        CHECK(model(on(layouts.mesh())).shape() == Shape{5, 2});
      }
    }
  }
}

TEST_CASE("a compiled model may first be called in a step by hand") {
  for (const Make& make : makes()) {
    for (const LayoutMap& layouts : layout_maps()) {
      CAPTURE(layouts.mesh().describe());
      const ModelHandle model = make();
      const SGD sgd(0.1);
      model.compile({.optimizer = sgd, .loss = "mse", .layouts = layouts});
      GradientTape tape;
      const DTensor loss = ops::mean(ops::square(model(on(layouts.mesh()))));
      const std::vector<Variable> weights = model.trainable_weights();
      std::vector<DTensor> values;
      for (const Variable& weight : weights) values.push_back(weight.value());
      const std::vector<at::Tensor> before = model.get_weights();
      const at::Tensor y = expected_outputs(model);
      sgd->apply(tape.gradient(loss, values), weights);
      CHECK(difference(model.get_weights()[3], before[3] - 0.1 * y.mean(0), 1e-5, 1e-6) == "");
    }
  }
}

TEST_CASE("the mesh option alone places the weights of a called model") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const Sequential model({Dense(2)});
  model.compile({.optimizer = "sgd", .loss = "mse", .mesh = mesh});
  CHECK(model(on(mesh)).mesh() == mesh);
}

TEST_CASE("a call of a compiled model checks the rules of its layouts") {
  LayoutMap wrong(create_mesh({{"batch", 2}}));
  wrong["third/kernel"] = {unsharded, "batch"};
  for (const Make& make : makes()) {
    const ModelHandle model = make();
    model.compile({.optimizer = "sgd", .loss = "mse", .layouts = wrong});
    CHECK_THROWS_WITH(model(on(wrong.mesh())), Contains("third/kernel"));
    CHECK_THROWS_WITH(model(on(wrong.mesh())), Contains("third/kernel"));
  }
}

TEST_CASE("a call inside another model leaves weights where that model placed them") {
  const Mesh two = create_mesh({{"batch", 2}}), three = create_mesh({{"batch", 3}});
  const Sequential inner({Dense(4)});
  inner.compile({.optimizer = "sgd", .loss = "mse", .mesh = two});
  const Sequential outer({inner, Dense(2)});
  outer.compile({.optimizer = "sgd", .loss = "mse", .mesh = three});
  CHECK(outer(on(three)).mesh() == three);
  CHECK(inner(on(three)).mesh() == three);
}

TEST_CASE("the error of a layer on another mesh says how its weights got there") {
  const Mesh one = create_mesh({{"batch", 1}}), two = create_mesh({{"batch", 2}});
  const Sequential tower({Input({4}), Dense(8, {.name = "hidden"})}, {.name = "tower"});
  const Input a({4}), b({4});
  const Functional first({a}, {Dense(1)(tower(a))}), second({b}, {Dense(2)(tower(b))});
  first.compile({.optimizer = "adam", .loss = "mse", .mesh = one});
  second.compile({.optimizer = "adam", .loss = "mse", .mesh = two});
  CHECK_NOTHROW(second.fit(rows(), at::ones({5, 2}), {.verbose = 0}));
  const char* const shared =
      "[Dense tower/hidden] a layer's weights must be on the mesh of its inputs. Received: "
      "tower/hidden/kernel placed on batch=2, inputs on batch=1. To fix: pack() the inputs for the "
      "mesh batch=2, on which a model's compile() or place_weights() placed the weights last; "
      "compile all models that share the layer for one mesh.";
  CHECK_THROWS_WITH(first.fit(rows(), at::ones({5, 1}), {.verbose = 0}), Contains(shared));
  CHECK_THROWS_WITH(tower(on(one)), Contains(shared));
  const Dense alone(2);
  CHECK_THROWS_WITH(alone(on(two)), Contains("dense/kernel on batch=1, inputs on batch=2. To fix: "
                                             "pass the layer to track() of the model or layer"));
}

}  // namespace compiled_call_test
