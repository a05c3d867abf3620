#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ctc.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tape_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

at::Tensor numbers(Shape shape, uint64_t seed, double lo = -1, double hi = 1) {
  return random_values({std::move(shape), at::kDouble, lo, hi}, seed);
}

const Mesh& mesh() {
  static const Mesh two = virtual_mesh({2});
  return two;
}

/// Shards the first axis over both devices.
DTensor sharded(const at::Tensor& full) {
  return pack(full, Layout::batch_sharded(mesh(), "x", full.dim()));
}

std::string same(const DTensor& actual, const at::Tensor& expected) {
  return difference(actual.full(), expected, 1e-10, 1e-12);
}

/// Returns a value tagged like a Variable's, without the Variable.
DTensor variable(const at::Tensor& full, bool trainable = true) {
  const DTensor value = sharded(full);
  value.set_tag(std::make_shared<VariableTag>(VariableTag{DTensor::next_id(), 0, trainable}));
  return value;
}

/// Returns the second derivative of sum(f) with respect to x, by nested tapes.
template <class Function>
DTensor second_derivative(const DTensor& x, const Function& f) {
  GradientTape outer;
  outer.watch(x);
  DTensor first;
  {
    GradientTape inner;
    inner.watch(x);
    const DTensor y = f(x);
    first = inner.gradient(y, x);
  }
  return outer.gradient(first, x);
}

}  // namespace

TEST_CASE("an outer tape differentiates the gradients of an inner one") {
  const at::Tensor x = numbers({3, 2}, 1, 0.2, 2);
  const DTensor d = sharded(x);
  CHECK(same(second_derivative(d, [](const DTensor& v) { return ops::pow(v, 3); }), 6 * x) == "");
  CHECK(same(second_derivative(d, [](const DTensor& v) { return v * v * v; }), 6 * x) == "");
  const at::Tensor t = x.tanh();
  CHECK(same(second_derivative(d, [](const DTensor& v) { return ops::tanh(v); }),
             -2 * t * (1 - t * t)) == "");
  const at::Tensor s = x.sigmoid();
  CHECK(same(second_derivative(d, [](const DTensor& v) { return ops::sigmoid(v); }),
             s * (1 - s) * (1 - 2 * s)) == "");
}

TEST_CASE("a product of matrices has second derivatives") {
  const at::Tensor x = numbers({3, 3}, 2);
  const auto f = [](const DTensor& v) { return ops::matmul(v, v); };
  // sum(x·x) is bilinear: its gradient x·1ᵀ + 1ᵀ·x has the constant gradient 6.
  CHECK(same(second_derivative(sharded(x), f), at::full({3, 3}, 6.0, at::kDouble)) == "");
}

TEST_CASE("a product of elements has second derivatives, also where one or two are 0") {
  const auto f = [](const DTensor& v) { return ops::prod(v, {1}); };
  // By x(j): the sum over all i but j of the products of the other two.
  const at::Tensor x = at::tensor({2., 3., 5., 0., 3., 5., 0., 0., 5.}, at::kDouble).view({3, 3});
  const at::Tensor expected =
      at::tensor({8., 7., 5., 8., 5., 3., 5., 5., 0.}, at::kDouble).view({3, 3});
  CHECK(same(second_derivative(sharded(x), f), expected) == "");
}

TEST_CASE("three tapes give the third derivative") {
  const at::Tensor x = numbers({4}, 3);
  const DTensor d = sharded(x);
  GradientTape outer;
  outer.watch(d);
  const DTensor second = second_derivative(d, [](const DTensor& v) { return ops::sin(v); });
  CHECK(same(outer.gradient(second, d), -x.cos()) == "");
}

TEST_CASE("an operation without a second derivative is an error that names it") {
  const DTensor x = sharded(numbers({2, 4, 3}, 4));
  const DTensor labels = sharded(at::tensor({1, 2, 2, 1}, at::kLong).view({2, 2}));
  const auto loss = [&](const DTensor& v) { return ops::ctc_loss(v, labels); };
  CHECK_THROWS_WITH(second_derivative(x, loss),
                    Contains("ctc_loss_grad") && Contains("has a derivative"));
}

TEST_CASE("gradient() can be called once, unless the tape is persistent") {
  const at::Tensor x = numbers({3}, 5);
  const DTensor d = sharded(x);
  {
    GradientTape tape;
    tape.watch(d);
    const DTensor y = ops::square(d);
    CHECK(same(tape.gradient(y, d), 2 * x) == "");
    CHECK_THROWS_WITH(tape.gradient(y, d),
                      Contains("[GradientTape]") && Contains("persistent = true"));
  }
  GradientTape tape({.persistent = true});
  tape.watch(d);
  const DTensor y = ops::square(d);
  const DTensor z = y * d;
  CHECK(same(tape.gradient(y, d), 2 * x) == "");
  CHECK(same(tape.gradient(z, d), 3 * x * x) == "");
  CHECK(same(tape.gradient(z, y), x) == "");
  const DTensor later = ops::exp(z);
  CHECK(same(tape.gradient(later, d), (x * x * x).exp() * 3 * x * x) == "");
}

TEST_CASE("only watched tensors are differentiated, from when they are watched") {
  const at::Tensor x = numbers({3}, 6);
  const DTensor d = sharded(x);
  GradientTape tape({.persistent = true});
  const DTensor before = ops::square(d);
  tape.watch(d);
  const DTensor after = ops::square(d);
  CHECK(!tape.gradient(before, d).defined());
  CHECK(same(tape.gradient(after, d), 2 * x) == "");
  tape.stop_recording();
  const DTensor unseen = ops::square(d);
  CHECK(!tape.gradient(unseen, d).defined());
}

TEST_CASE("Variables are watched when they are trainable and the tape is asked to") {
  const at::Tensor x = numbers({3}, 7);
  const DTensor weight = variable(x), frozen = variable(x, false);
  GradientTape tape;
  const DTensor y = weight * frozen;
  const std::vector<DTensor> gradients = tape.gradient(y, {weight, frozen});
  CHECK(same(gradients[0], x) == "");
  CHECK(!gradients[1].defined());
  GradientTape blind({.watch_variables = false});
  CHECK(!blind.gradient(ops::square(weight), weight).defined());
}

TEST_CASE("a copy of a Variable's value made later is the same source") {
  const at::Tensor x = numbers({3}, 8);
  const DTensor weight = variable(x);
  const DTensor again = sharded(x);
  again.set_tag(weight.tag());
  GradientTape tape;
  const DTensor y = ops::square(weight) + again;
  CHECK(same(tape.gradient(y, again), 2 * x + 1) == "");
}

TEST_CASE("stop_gradient and integers propagate no gradient") {
  const at::Tensor x = numbers({3}, 9);
  const DTensor d = sharded(x);
  GradientTape tape({.persistent = true});
  tape.watch(d);
  const DTensor y = d * ops::stop_gradient(d);
  const DTensor z = ops::cast(ops::cast(d, at::kLong), at::kDouble);
  const DTensor sign = ops::sign(d);
  CHECK(same(tape.gradient(y, d), x) == "");
  CHECK(!tape.gradient(z, d).defined());
  CHECK(!tape.gradient(sign, d).defined());
}

TEST_CASE("a source that the target does not depend on has no gradient, or zeros") {
  const DTensor d = sharded(numbers({3}, 10)), other = sharded(numbers({4, 2}, 11));
  GradientTape tape({.persistent = true});
  tape.watch(d);
  tape.watch(other);
  const DTensor y = ops::square(d);
  CHECK(!tape.gradient(y, other).defined());
  const DTensor zero = tape.gradient(y, other, {.unconnected = Unconnected::zero});
  CHECK(same(zero, at::zeros({4, 2}, at::kDouble)) == "");
  CHECK(zero.layout() == other.layout());
}

TEST_CASE("an output gradient replaces the default of ones") {
  const at::Tensor x = numbers({4}, 12), g = numbers({4}, 13);
  const DTensor d = sharded(x);
  GradientTape tape;
  tape.watch(d);
  const DTensor y = ops::square(d);
  const DTensor seed = pack(g, Layout::replicated(mesh(), 1));
  CHECK(same(tape.gradient(y, d, {.output_gradient = seed}), 2 * x * g) == "");
}

TEST_CASE("the target itself is a source") {
  const at::Tensor x = numbers({4}, 14);
  const DTensor d = sharded(x);
  GradientTape tape;
  tape.watch(d);
  const DTensor y = ops::square(d);
  const std::vector<DTensor> gradients = tape.gradient(y, {y, d, d});
  CHECK(same(gradients[0], at::ones({4}, at::kDouble)) == "");
  CHECK(same(gradients[1], 2 * x) == "");
  CHECK(same(gradients[2], 2 * x) == "");
}

TEST_CASE("gradients of a tensor that is used several times are accumulated") {
  const at::Tensor x = numbers({3, 3}, 15);
  const DTensor d = sharded(x);
  GradientTape tape;
  tape.watch(d);
  const DTensor y = ops::exp(d) * d + ops::matmul(d, d) + ops::sum(d, {0});
  const at::Tensor ones = at::ones({3, 3}, at::kDouble);
  const at::Tensor expected = x.exp() * (x + 1) + ones.mm(x.t()) + x.t().mm(ones) + 3;
  CHECK(same(tape.gradient(y, d), expected) == "");
}

TEST_CASE("a value that is used after its gradient was needed keeps it") {
  const at::Tensor x = numbers({4}, 16);
  const DTensor d = sharded(x);
  GradientTape tape;
  tape.watch(d);
  const DTensor middle = ops::square(d);
  const DTensor y = middle * middle;
  const std::vector<DTensor> gradients = tape.gradient(y, {middle, d});
  CHECK(same(gradients[0], 2 * x * x) == "");
  CHECK(same(gradients[1], 4 * x * x * x) == "");
}

TEST_CASE("a Variable that changed since the forward pass is an error") {
  const at::Tensor x = numbers({3}, 17);
  const auto tag =
      std::make_shared<VariableTag>(VariableTag{.id = DTensor::next_id(), .path = "dense/kernel"});
  const DTensor weight = sharded(x);
  weight.set_tag(tag);
  GradientTape tape({.persistent = true});
  const DTensor product = weight * weight;
  const DTensor sum = weight + weight;
  CHECK(same(tape.gradient(product, weight), 2 * x) == "");
  ++tag->version;
  CHECK_THROWS_WITH(tape.gradient(product, weight),
                    Contains("[GradientTape, mul]") &&
                        Contains("Received: dense/kernel was assigned in between"));
  // add saves nothing that could have changed.
  CHECK(same(tape.gradient(sum, weight), at::full({3}, 2.0, at::kDouble)) == "");
  // Rematerialized values would not equal the original ones.
  const DTensor moved = ops::relayout(weight, Layout::replicated(weight.mesh(), 1), true);
  const DTensor squares = moved * moved;
  ++tag->version;
  CHECK_THROWS_WITH(tape.gradient(squares, weight),
                    Contains("[GradientTape, relayout]") && Contains("assigned in between"));
  // The error did not end the recording.
  const DTensor later = ops::square(weight);
  CHECK(same(tape.gradient(later, weight), 2 * x) == "");
}

TEST_CASE("a Variable that is not trained may be assigned after it was read") {
  const at::Tensor x = numbers({3}, 17), y = numbers({3}, 18);
  const auto tag =
      std::make_shared<VariableTag>(VariableTag{.id = DTensor::next_id(), .trainable = false});
  const DTensor state = sharded(y);
  state.set_tag(tag);
  const DTensor source = sharded(x);
  GradientTape tape;
  tape.watch(source);
  const DTensor product = ops::square(source) * state;
  ++tag->version;
  CHECK(same(tape.gradient(product, source), 2 * x * y) == "");
}

}  // namespace tape_test
