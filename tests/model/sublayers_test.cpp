#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/seed_scope.hpp"

namespace sublayers_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::difference;

namespace {

/// A plain layer that contains layers, without output_shape().
class Block final : public Layer {
 public:
  explicit Block(const LayerOptions& options = {}) : Layer(options) {}
  std::string class_name() const override { return "Block"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    // The nested calls inherit the context of this call.
    return narrow_(drop_(norm_(wide_(inputs[0]))));
  }

 private:
  LayerHandle wide_ = track(Dense(5, {.activation = "relu"}));
  LayerHandle norm_ = track(BatchNormalization());
  LayerHandle drop_ = track(Dropout(0.5));
  LayerHandle narrow_ = track(Dense(2));
};

/// A layer with a weight, a block, and a layer that is created with the weights.
class Outer final : public Layer {
 public:
  Outer() : Layer(LayerOptions()) {}
  std::string class_name() const override { return "Outer"; }
  Shape output_shape(const Shapes& inputs) const override { return {inputs[0][0], 3}; }

 protected:
  void make_weights(const Shapes&) override {
    scale_ = add_weight("scale", {2}, Ones());
    head_ = track(Dense(3)).layer();
  }
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return (*head_)(block_(inputs[0], context) * read(scale_), context);
  }

 private:
  LayerHandle block_ = track(make_layer<Block>());
  std::shared_ptr<Layer> head_;
  Variable scale_;
};

std::vector<std::string> paths_of(const std::vector<Variable>& weights) {
  std::vector<std::string> paths;
  for (const Variable& weight : weights) paths.push_back(weight.path());
  return paths;
}

/// Paths in Keras' order for Sequential([Input((4,)), Dense(3), Block(), Dense(3)]). Keras counts
/// names through the program; here a layer counts its own.
const std::vector<std::string> block_paths = {"dense/kernel",
                                              "dense/bias",
                                              "block/dense/kernel",
                                              "block/dense/bias",
                                              "block/batch_normalization/gamma",
                                              "block/batch_normalization/beta",
                                              "block/batch_normalization/moving_mean",
                                              "block/batch_normalization/moving_variance",
                                              "block/dense_1/kernel",
                                              "block/dense_1/bias",
                                              "dense_1/kernel",
                                              "dense_1/bias"};

const LossHandle crossentropy = SparseCategoricalCrossentropy({.from_logits = true});

}  // namespace

TEST_CASE("a plain layer has the weights of its sublayers, in Keras' order", "[sublayers]") {
  const Sequential model({Input({4}), Dense(3), make_layer<Block>(), Dense(3)});
  CHECK(paths_of(model.weights()) == block_paths);
  CHECK(model.get_layer("block")->output_shape({{-1, 3}}) == Shape{-1, 2});
  const Input x({4});
  const LayerHandle first = Dense(3), block = make_layer<Block>(), last = Dense(3);
  CHECK(paths_of(Functional({x}, {last(block(first(x)))}).weights()) == block_paths);
  const Sequential outer({Input({4}), make_layer<Outer>()});
  const std::vector<std::string> paths = paths_of(outer.weights());
  CHECK(paths.size() == 1 + 8 + 2);
  CHECK(paths[0] == "outer/scale");
  CHECK(paths[1] == "outer/block/dense/kernel");
  CHECK(paths.back() == "outer/dense/bias");
}

TEST_CASE("two blocks are numbered", "[sublayers]") {
  const Input x({4});
  const LayerHandle first = make_layer<Block>(), second = make_layer<Block>();
  const std::vector<std::string> paths = paths_of(Functional({x}, {second(first(x))}).weights());
  CHECK(paths.size() == 16);
  CHECK(paths[0] == "block/dense/kernel");
  CHECK(paths[8] == "block_1/dense/kernel");
}

TEST_CASE("sublayers of a plain layer are trained, equally on every mesh", "[sublayers]") {
  at::manual_seed(1);
  const at::Tensor x = at::rand({32, 4}), y = at::randint(0, 3, {32}, at::kLong);
  std::vector<at::Tensor> first;
  for (const MeshDims& dims : {MeshDims{{"batch", 1}}, {{"batch", 2}, {"model", 2}}}) {
    const test::SeedScope seed(7);
    LayoutMap layouts(create_mesh(dims));
    if (dims.size() > 1) layouts["outer/block/dense/kernel"] = {unsharded, "model"};
    const Sequential model({make_layer<Outer>()});
    model.compile({.optimizer = SGD(0.1), .loss = crossentropy, .layouts = layouts});
    const History history = model.fit(x, y, {.epochs = 40, .verbose = 0});
    CHECK(history.at("loss").back() < history.at("loss").front());
    const std::vector<at::Tensor> values = model.get_weights();
    if (first.empty()) first = values;
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(difference(values[i], first[i], 1e-4, 1e-5) == "");
    }
  }
}

TEST_CASE("freezing, losses and files reach sublayers", "[sublayers]") {
  const Sequential model({Input({4}), make_layer<Outer>()});
  CHECK(model.trainable_weights().size() == 9);
  model.get_layer("outer")->set_trainable(false);
  CHECK(model.trainable_weights().empty());
  const test::TempFolder folder;
  model.save_weights(folder / "w.safetensors");
  const Sequential again({Input({4}), make_layer<Outer>()});
  again.load_weights(folder / "w.safetensors");
  const at::Tensor x = at::rand({3, 4});
  CHECK(difference(again.predict(x), model.predict(x)) == "");
}

TEST_CASE("a nested call inherits the context of the call around it", "[sublayers]") {
  // Dropout and the batch mean change the output.
  const LayerHandle block = make_layer<Block>();
  const DTensor x = pack(at::rand({64, 4}), Layout::replicated(default_mesh(), 2));
  const CallContext training{.training = true,
                             .random = std::make_shared<tessera::detail::RandomStream>(1, 0)};
  const at::Tensor inference = block(x).full().clone();
  CHECK(difference(block(x).full(), inference) == "");
  const std::vector<Variable> weights = block->weights();
  const at::Tensor before = weights[4].value().full().clone();
  CHECK(weights[4].path() == "block/batch_normalization/moving_mean");
  CHECK(difference(block(x, training).full(), inference) != "");
  CHECK(difference(weights[4].value().full(), before) != "");
  // Outside of all calls it is inference.
  CHECK_FALSE(tessera::detail::call_context().training);
}

TEST_CASE("an output_shape() that differs from call() is named", "[sublayers]") {
  class Wrong final : public Layer {
   public:
    Wrong() : Layer({.name = "wrong"}) {}
    std::string class_name() const override { return "Wrong"; }
    Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }

   protected:
    DTensor call(const Inputs& inputs, const CallContext&) override {
      return ops::sum(inputs[0], {1});
    }
  };
  const Sequential model({make_layer<Wrong>(), Dense(2)});
  CHECK_THROWS_WITH(model.predict(at::rand({3, 4})),
                    "[Wrong wrong] call() and output_shape() must agree on the output's shape. "
                    "Received: (3, 4) from output_shape(), (3,) from call(). To fix: make them "
                    "equal, or leave output_shape() out.");
}

TEST_CASE("a layer is not put inside itself", "[sublayers]") {
  class Open final : public Layer {
   public:
    Open() : Layer(LayerOptions()) {}
    std::string class_name() const override { return "Open"; }
    void put(const LayerHandle& layer) { track(layer); }
  };
  const auto outer = std::make_shared<Open>(), inner = std::make_shared<Open>();
  outer->put(LayerHandle(inner));
  CHECK_THROWS_WITH(inner->put(LayerHandle(outer)), Contains("a layer cannot contain itself"));
}

}  // namespace sublayers_test
