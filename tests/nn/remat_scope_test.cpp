#include <tessera/tessera.hpp>

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/op_names.hpp"
#include "tests/support/seed_scope.hpp"

namespace remat_scope_test {

using namespace tessera;
using namespace tessera::test;
using Catch::Contains;
using Names = std::vector<std::string>;

namespace {

/// The gradients of a small model, and the sorted operations of its backward pass.
struct Pass {
  std::vector<at::Tensor> gradients;
  Names ran;
};

/// Differentiates a model whose layers are made in a scope with these options.
Pass backward(const RematScopeOptions& options) {
  const SeedScope seed(3);
  std::optional<RematScope> scope(std::in_place, options);
  const Sequential model({Input({6}), Dense(8, {.activation = "gelu", .name = "wide"}),
                          Dense(2, {.activation = "gelu", .name = "narrow"})});
  scope.reset();
  const DTensor x = pack(at::sin(at::arange(24, at::kFloat)).view({4, 6}));
  GradientTape tape;
  const DTensor loss = ops::sum(model(x, {.training = true}));
  const OpNames names;
  const std::vector<DTensor> gradients = tape.gradient(loss, model.trainable_weights());
  Pass pass;
  for (const DTensor& gradient : gradients) pass.gradients.push_back(gradient.full().clone());
  pass.ran = names.all();
  std::sort(pass.ran.begin(), pass.ran.end());
  return pass;
}

/// Returns what a pass runs besides the operations of `plain`, whose gradients it must have.
Names extra(const Pass& pass, const Pass& plain) {
  REQUIRE(pass.gradients.size() == plain.gradients.size());
  for (size_t i = 0; i < plain.gradients.size(); ++i) {
    CHECK(at::equal(pass.gradients[i], plain.gradients[i]));
  }
  Names names;
  std::set_difference(pass.ran.begin(), pass.ran.end(), plain.ran.begin(), plain.ran.end(),
                      std::back_inserter(names));
  return names;
}

}  // namespace

TEST_CASE("RematScope: Keras' modes choose layers", "[remat]") {
  const Pass plain = backward({.mode = RematMode::none});
  const Names full = extra(backward({}), plain);
  const auto listed = [&](const Names& layers) {
    return extra(backward({.mode = RematMode::list_of_layers, .layer_names = layers}), plain);
  };
  const Names wide = listed({"wide"}), narrow = listed({"narrow"});
  CHECK_FALSE(wide.empty());
  CHECK_FALSE(narrow.empty());
  CHECK(listed({"other"}).empty());
  Names both = wide;
  both.insert(both.end(), narrow.begin(), narrow.end());
  std::sort(both.begin(), both.end());
  CHECK(full == both);
  // Four rows of eight and of two elements.
  const auto larger = [&](int64_t threshold) {
    return extra(backward({.mode = RematMode::larger_than, .output_size_threshold = threshold}),
                 plain);
  };
  CHECK(larger(7) == full);
  CHECK(larger(8) == wide);
  CHECK(larger(32).empty());
  // The results of products are saved, those of activations are computed where they are read.
  const Names activations = extra(backward({.mode = RematMode::activations}), plain);
  CHECK_FALSE(activations.empty());
  CHECK(std::find(activations.begin(), activations.end(), "dense") == activations.end());
  CHECK(std::find(wide.begin(), wide.end(), "dense") != wide.end());
  // A policy saves them, too.
  const Names products = extra(backward({.policy = {.save = {"matmuls"}}}), plain);
  CHECK(std::find(products.begin(), products.end(), "dense") == products.end());
}

TEST_CASE("RematScope: the innermost scope counts", "[remat]") {
  const RematScope outer;
  const Pass plain = backward({.mode = RematMode::none});
  CHECK(extra(backward({.mode = RematMode::list_of_layers}), plain).empty());
  CHECK_THROWS_WITH(RematScope({.policy = {.save = {"matmul_s"}}}), Contains("\"matmul"));
}

namespace {

/// A layer with state and code of its own.
class Counting : public Layer {
 public:
  using Layer::Layer;
  std::string class_name() const override { return "Counting"; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }
  int calls = 0;

 private:
  void make_weights(const Shapes&) override {
    seen_ = add_weight("seen", {}, "zeros", {.trainable = false});
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    ++calls;
    seen_.assign_add(ops::cast(ops::mean(inputs[0]), at::kFloat));
    const DTensor y = ops::tanh(inputs[0] * 2.0);
    add_loss(ops::mean(ops::square(y)));
    return y;
  }

  Variable seen_;
};

/// Trains four steps; returns losses and weights, and the calls of the counting layer.
std::pair<std::vector<at::Tensor>, int> trained(const std::vector<RematRule>& remat, bool eager) {
  const SeedScope seed(5);
  const auto counting = std::make_shared<Counting>(LayerOptions{.name = "part_5"});
  const Sequential model(
      {Input({7}), Embedding(20, 8, {.mask_zero = true, .name = "tokens"}),
       LSTM(8, {.dropout = 0.2, .return_sequences = true, .name = "part_1"}),
       Dropout(0.3, {.name = "part_2"}), GlobalAveragePooling1D({.name = "pool"}),
       Dense(8, {.activation = "softmax", .kernel_regularizer = L2(0.1), .name = "part_3"}),
       BatchNormalization({.name = "part_4"}), LayerHandle(counting),
       Dense(3, {.name = "logits"})});
  model.compile({.optimizer = Adam(1e-2),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .run_eagerly = eager,
                 .record_steps = !eager,
                 .mesh = create_mesh({{"batch", 2}}),
                 .remat = remat});
  std::vector<at::Tensor> all;
  for (int64_t step = 0; step < 4; ++step) {
    const at::Tensor words = (at::arange(56, at::kLong) * 7 + step).remainder(20).view({8, 7});
    const at::Tensor labels = (at::arange(8, at::kLong) + step).remainder(3);
    for (const auto& [name, value] : model.train_on_batch({.x = {words}, .y = {labels}})) {
      all.push_back(at::scalar_tensor(value, at::kDouble));
    }
  }
  for (const Variable& weight : model.weights()) all.push_back(weight.value().full().clone());
  return {all, counting->calls};
}

}  // namespace

TEST_CASE("remat: masks, dropout, states, losses and statistics count once", "[remat]") {
  const auto [saved, calls] = trained({}, true);
  for (const bool eager : {true, false}) {
    const auto [again, again_calls] = trained({{.match = "part_\\d"}}, eager);
    REQUIRE(again.size() == saved.size());
    for (size_t i = 0; i < saved.size(); ++i) {
      CAPTURE(eager, i);
      CHECK(at::equal(again[i], saved[i]));
    }
    if (eager) CHECK(again_calls == calls);
  }
}

}  // namespace remat_scope_test
