#include <tessera/framework/ops/attention/attention.hpp>

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"

/// Biases added to attention's scores, and the log-sum-exp of the scores.
namespace attention_scores_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Inputs = std::vector<DTensor>;
using FullTensors = std::vector<at::Tensor>;

constexpr double closed = -std::numeric_limits<double>::infinity();

FullTensors operands(int64_t t, int64_t s, int64_t heads, int64_t shared) {
  return {at::randn({2, t, heads, 2}, at::kDouble), at::randn({2, s, shared, 2}, at::kDouble),
          at::randn({2, s, shared, 2}, at::kDouble)};
}

/// Returns the scores (batch, heads, T, S).
at::Tensor scores_of(const FullTensors& in) {
  const int64_t group = in[0].size(2) / in[1].size(2);
  const at::Tensor k = in[1].repeat_interleave(group, 2).transpose(1, 2);
  return at::matmul(in[0].transpose(1, 2), k.transpose(-1, -2)) / std::sqrt(double(in[0].size(3)));
}

at::Tensor by_hand(const FullTensors& in, const at::Tensor& added) {
  const int64_t group = in[0].size(2) / in[2].size(2);
  const at::Tensor v = in[2].repeat_interleave(group, 2).transpose(1, 2);
  return at::matmul(at::softmax(scores_of(in) + added, -1), v).transpose(1, 2);
}

Function attending(const ops::SdpaOptions& options = {}) {
  return [options](const Inputs& x) { return ops::attention(x[0], x[1], x[2], x[3], options); };
}

FullTensors with(FullTensors in, const at::Tensor& more) {
  in.push_back(more);
  return in;
}

DTensor placed(const at::Tensor& x, const LayoutSpec& spec, const Mesh& mesh) {
  return pack(x, Layout(spec, mesh));
}

}  // namespace

TEST_CASE("biases of attention's scores are added and have gradients, in every layout") {
  const FullTensors in = operands(3, 4, 4, 2);
  for (const Shape& shape :
       {Shape{2, 4, 3, 4}, {1, 4, 3, 4}, {1, 1, 3, 4}, {4, 1, 4}, {2, 1, 3, 1}}) {
    CAPTURE(shape);
    const at::Tensor added = at::randn(shape, at::kDouble);
    CHECK(wrong_values(with(in, added), attending(), by_hand(in, added)) == "");
    CHECK(wrong_gradients(with(in, added), attending()) == "");
  }
}

TEST_CASE("a bias of -inf closes a key, and a step without open keys gives the mean, like a mask") {
  const FullTensors in = operands(3, 4, 2, 2);
  const at::Tensor open =
      at::tensor({1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0}).view({3, 4}).to(at::kBool);
  const at::Tensor numbers = at::randn({3, 4}, at::kDouble);
  for (const bool zeros : {false, true}) {
    CAPTURE(zeros);
    const auto both = [&](const Inputs& x) {
      return ops::attention(x[0], x[1], x[2], x[3], {.zeros = zeros, .masks = {x[4]}});
    };
    at::Tensor expected = by_hand(in, numbers.masked_fill(open.logical_not(), -1e300));
    const at::Tensor any = open.any(-1).view({1, 3, 1, 1});
    expected = at::where(any, expected, zeros ? at::zeros({}, at::kDouble) : in[2].mean(1, true));
    // Closed inside the function, as partial sums of -inf would give NaN.
    const auto added = [&](const Inputs& x) {
      const DTensor none = scalar(closed, x[3].mesh(), at::kDouble);
      return ops::attention(x[0], x[1], x[2], ops::where(x[4], x[3], none), {.zeros = zeros});
    };
    CHECK(wrong_values(with(with(in, numbers), open), added, expected) == "");
    CHECK(wrong_values(with(with(in, numbers), open), both, expected) == "");
  }
}

TEST_CASE("biases of a ring's causal scores equal those of one device, gradients included") {
  const FullTensors in = operands(6, 6, 2, 2);
  const at::Tensor added = at::randn({1, 2, 6, 6}, at::kDouble);
  const auto results = [&](const Mesh& mesh, const AxisSpec& steps, const AxisSpec& rows) {
    Inputs values;
    for (const at::Tensor& x : in) {
      values.push_back(placed(x, {unsharded, steps, unsharded, unsharded}, mesh));
    }
    values.push_back(placed(added, {unsharded, unsharded, rows, unsharded}, mesh));
    GradientTape tape;
    for (const DTensor& value : values) tape.watch(value);
    CommLog log;
    const CommLogScope scope(log);
    const DTensor y = ops::attention(values[0], values[1], values[2], values[3], {.causal = true});
    FullTensors list = {y.full().clone()};
    // A ring rather than an all-gather.
    CHECK((log.count(CommOp::collective_permute, "steps") > 0) == (mesh.size() > 1));
    for (const DTensor& gradient : tape.gradient(ops::sum(ops::square(y)), values)) {
      list.push_back(gradient.full().clone());
    }
    return list;
  };
  const FullTensors single = results(create_mesh({{"steps", 1}}), nullptr, nullptr);
  for (const int64_t devices : {2, 3, 4}) {
    for (const AxisSpec& rows : {AxisSpec(nullptr), AxisSpec("steps")}) {
      const FullTensors cut = results(create_mesh({{"steps", devices}}), "steps", rows);
      for (size_t i = 0; i < single.size(); ++i) {
        CAPTURE(devices, i);
        CHECK(difference(cut[i], single[i], 1e-12, 1e-12) == "");
      }
    }
  }
}

TEST_CASE("results over parts of the keys combine by their log-sum-exps") {
  const FullTensors in = operands(3, 6, 4, 2);
  const Mesh mesh = create_mesh({{"batch", 2}});
  const auto part = [&](int64_t first, int64_t keys) {
    const LayoutSpec rows = {"batch", unsharded, unsharded, unsharded};
    return ops::attention_and_logsumexp(placed(in[0], rows, mesh),
                                        placed(in[1].narrow(1, first, keys), rows, mesh),
                                        placed(in[2].narrow(1, first, keys), rows, mesh));
  };
  const auto [full, sums] = part(0, 6);
  CHECK(sums.shape() == Shape{2, 4, 3});
  CHECK(difference(sums.full(), scores_of(in).logsumexp(-1), 1e-12, 1e-12) == "");
  const auto [left, left_sums] = part(0, 2);
  const auto [right, right_sums] = part(2, 4);
  const auto weight = [&sums = sums](const DTensor& one) {
    return (one.full() - sums.full()).exp().transpose(1, 2).unsqueeze(-1);
  };
  const at::Tensor both = left.full() * weight(left_sums) + right.full() * weight(right_sums);
  CHECK(difference(both, full.full(), 1e-12, 1e-12) == "");
  const Function of_sums = [](const Inputs& x) {
    return ops::attention_and_logsumexp(x[0], x[1], x[2]).second;
  };
  CHECK(wrong_gradients(in, of_sums) == "");
}

TEST_CASE("a mask whose dtype differs from the query's is refused in one line") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const FullTensors in = operands(3, 4, 2, 2);
  const auto replicated = [&](const at::Tensor& x) {
    return pack(x, Layout::replicated(mesh, x.dim()));
  };
  CHECK_THROWS_WITH(
      ops::attention(replicated(in[0]), replicated(in[1]), replicated(in[2]),
                     replicated(at::zeros({3, 4}))),
      Contains("[attention] a mask is bool, or of the query's dtype to be added to the scores") &&
          Contains("(1, 1, 3, 4) of float32") && !Contains("\n"));
}

}  // namespace attention_scores_test
