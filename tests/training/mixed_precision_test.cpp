#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdio>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace mixed_precision_test {

using namespace tessera;

namespace {

Sequential made_in(const std::string& policy) {
  const test::DTypeScope scope(policy);
  return Sequential({Input({4}), Dense(3, {.use_bias = false, .name = "dense"})});
}

/// Returns the name of the optimizer after compile().
std::string optimizer_in(const std::string& policy, bool auto_scale_loss = true) {
  const Sequential model = made_in(policy);
  model.compile({.optimizer = Adam(), .loss = "mse", .auto_scale_loss = auto_scale_loss});
  return model->optimizer()->class_name();
}

/// Returns the kernel after a step with gradients of about 1e-9, which underflow in float16.
at::Tensor kernel_after_a_small_step(bool auto_scale_loss) {
  const Sequential model = made_in("mixed_float16");
  model.compile({.optimizer = SGD(1e6),
                 .loss = "mse",
                 .loss_weights = 1e-8,
                 .auto_scale_loss = auto_scale_loss});
  model.build({-1, 4});
  model.fit(at::ones({8, 4}), at::ones({8, 3}), {.batch_size = 8, .epochs = 1, .verbose = 0});
  return model->weights()[0].value().full();
}

/// Texts labelled by which of two words is more frequent.
TensorDataset texts(int64_t rows, int64_t seed) {
  const at::Tensor x = test::random_values({{rows, 16}, at::kLong, 0, 12}, seed).clone();
  const at::Tensor more = x.eq(3).sum(-1).gt(x.eq(7).sum(-1));
  return TensorDataset(x, more.to(at::kLong));
}

/// Returns a transformer's accuracy on texts that it was not trained on.
double transformer_accuracy(const std::string& policy, int64_t seed) {
  const test::DTypeScope scope(policy);
  set_random_seed(seed);
  const SymbolicTensor ids = Input({16}, {.dtype = "int64"});
  SymbolicTensor x = Embedding(12, 16)(ids);
  x = LayerNormalization()(Add()({x, MultiHeadAttention(2, 8)({x, x})}));
  x = LayerNormalization()(Add()({x, Dense(16)(Dense(32, {.activation = "gelu"})(x))}));
  x = Dropout(0.1)(GlobalAveragePooling1D()(x));
  const Functional model({ids}, {Dense(2, {.dtype = "float32"})(x)});
  model.compile({.optimizer = Adam(3e-3),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  model.fit(texts(160, 1), {.batch_size = 16, .epochs = 4, .verbose = 0});
  return model.evaluate(texts(1000, 2), {.batch_size = 100, .verbose = 0})[0].second;
}

/// Returns the mean of five seeds and its squared standard error.
std::pair<double, double> mean_accuracy(const std::string& policy) {
  std::vector<double> all;
  for (int64_t seed = 1; seed <= 5; ++seed) all.push_back(transformer_accuracy(policy, seed));
  const at::Tensor values = at::tensor(all, at::kDouble);
  return {values.mean().item<double>(), values.var().item<double>() / 5};
}

/// Layers and operations that add up 4096 numbers of up to 255 in each row.
Functional model_of_sums() {
  const SymbolicTensor x = Input({64, 64, 1});
  const SymbolicTensor y = RandomContrast(0.001)(x);
  const SymbolicTensor penalized = ActivityRegularization({.l1 = 1e-5, .l2 = 1e-8})(y);
  const SymbolicTensor pooled = GlobalAveragePooling2D()(penalized);
  const SymbolicTensor mean = ops::mean(y, {1, 2}), deviation = ops::sqrt(ops::variance(y, {1, 2}));
  return Functional({x}, {Dense(1)(UnitNormalization()(Concatenate()({pooled, mean, deviation})))});
}

/// Returns the losses of three epochs of one step.
std::vector<double> losses_of_sums(const std::string& policy, bool run_eagerly) {
  const test::DTypeScope scope(policy);
  set_random_seed(3);
  const Functional model = model_of_sums();
  model.compile(
      {.optimizer = SGD(0.1), .loss = "mse", .run_eagerly = run_eagerly, .auto_scale_loss = false});
  const at::Tensor x = test::random_values({{4, 64, 64, 1}, at::kFloat, 0, 250}, 1);
  const History history =
      model.fit(x, at::ones({4, 1}), {.batch_size = 4, .epochs = 3, .verbose = 0});
  return history.at("loss");
}

}  // namespace

TEST_CASE("mixed precision adds up activations as float32 does, in eager and replayed steps") {
  const std::vector<double> expected = losses_of_sums("float32", true);
  for (const char* policy : {"mixed_float16", "mixed_bfloat16"}) {
    for (const bool run_eagerly : {true, false}) {
      CAPTURE(policy, run_eagerly);
      const std::vector<double> losses = losses_of_sums(policy, run_eagerly);
      REQUIRE(losses.size() == expected.size());
      for (size_t e = 0; e < losses.size(); ++e) {
        CHECK(losses[e] == Approx(expected[e]).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("a transformer classifies in mixed precision as well as in float32", "[nightly]") {
  const auto [expected, variance] = mean_accuracy("float32");
  CHECK(expected > 0.8);
  CHECK(expected < 0.99);
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    const auto [accuracy, own] = mean_accuracy(policy);
    const double error = std::sqrt(variance + own);
    std::printf(
        "transformer, %s: accuracy %.4f, float32 %.4f, standard error of the difference "
        "%.4f\n",
        policy, accuracy, expected, error);
    CHECK(std::abs(accuracy - expected) <= 3 * error);
  }
}

TEST_CASE("mixed_float16 scales the loss by default, other policies do not") {
  CHECK(optimizer_in("mixed_float16") == "LossScaleOptimizer");
  CHECK(optimizer_in("mixed_bfloat16") == "Adam");
  CHECK(optimizer_in("float32") == "Adam");
  CHECK(optimizer_in("mixed_float16", false) == "Adam");
  const LossScaleOptimizer own(Adam(1e-3), {.initial_scale = 2});
  const Sequential model = made_in("mixed_float16");
  model.compile({.optimizer = own, .loss = "mse"});
  CHECK(&*model->optimizer() == &*own);
  made_in("mixed_float16").compile({});
  const Sequential wrapped = made_in("mixed_float16");
  wrapped.compile({.optimizer = Adam(), .loss = "mse"});
  CHECK(wrapped->optimizer()->class_name() == "LossScaleOptimizer");
  CHECK(wrapped->compile_options().optimizer->class_name() == "Adam");
}

TEST_CASE("a model has the policy of its configuration, whatever the default") {
  const SymbolicTensor x = Input({4});
  for (const ModelHandle& model : {ModelHandle(Sequential({Dense(3)}, {.dtype = "mixed_float16"})),
                                   ModelHandle(made_in("mixed_float16"))}) {
    const ModelHandle same = model_from_json(model.to_json());
    same.compile({.optimizer = Adam(), .loss = "mse"});
    CHECK(same->optimizer()->class_name() == "LossScaleOptimizer");
  }
  const Functional made({x}, {Dense(3)(x)}, {.dtype = "mixed_float16"});
  made.compile({.optimizer = Adam(), .loss = "mse"});
  CHECK(made->optimizer()->class_name() == "LossScaleOptimizer");
}

TEST_CASE("gradients that underflow in float16 arrive only with a scaled loss") {
  const at::Tensor lost = kernel_after_a_small_step(false);
  const at::Tensor trained = kernel_after_a_small_step(true);
  const Sequential untrained = made_in("mixed_float16");
  untrained.build({-1, 4});
  const at::Tensor first = untrained->weights()[0].value().full();
  CHECK(test::difference(lost, first) == "");
  // Like float32, whose gradients are exact.
  const Sequential model = made_in("float32");
  model.compile({.optimizer = SGD(1e6), .loss = "mse", .loss_weights = 1e-8});
  model.build({-1, 4});
  model.fit(at::ones({8, 4}), at::ones({8, 3}), {.batch_size = 8, .epochs = 1, .verbose = 0});
  const at::Tensor expected = model->weights()[0].value().full();
  CHECK_FALSE(at::allclose(expected, first, 1e-4));
  CHECK(test::difference(trained, expected, 0, 2e-5) == "");
}

}  // namespace mixed_precision_test
