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
#include "tests/support/error_line.hpp"
#include "tests/support/function_check.hpp"

namespace attention_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Inputs = std::vector<DTensor>;

Function attending(const ops::SdpaOptions& options) {
  return [options](const Inputs& x) {
    return ops::attention(x[0], x[1], x[2], x.size() > 3 ? x[3] : DTensor(), options);
  };
}

/// Returns query, key and value of T and S steps.
std::vector<at::Tensor> operands(int64_t t, int64_t s, at::ScalarType dtype = at::kDouble) {
  std::vector<at::Tensor> list;
  for (const int64_t steps : {t, s, s}) list.push_back(at::randn({2, steps, 2, 3}).to(dtype));
  return list;
}

/// Attention by its textbook formula, in float64; a step that may attend to nothing gives the mean.
at::Tensor by_hand(const std::vector<at::Tensor>& in, double scale, bool causal,
                   const at::Tensor& mask = {}) {
  const at::Tensor q = in[0].to(at::kDouble).transpose(1, 2),
                   k = in[1].to(at::kDouble).transpose(1, 2),
                   v = in[2].to(at::kDouble).transpose(1, 2);
  at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) * scale;
  at::Tensor open = at::ones({q.size(2), k.size(2)}, at::kBool);
  if (causal) open = open.tril();
  if (mask.defined()) open = open.logical_and(mask);
  scores = scores.masked_fill(open.logical_not(), std::numeric_limits<double>::lowest());
  return at::matmul(at::softmax(scores, -1), v).transpose(1, 2);
}

DTensor replicated(const at::Tensor& full) {
  return pack(full, Layout::replicated(default_mesh(), full.dim()));
}

/// Returns the gradients of the sum of the squares of attention's output.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& in, const Function& function) {
  Inputs values;
  GradientTape tape;
  for (const at::Tensor& each : in) values.push_back(replicated(each));
  for (const DTensor& value : values) tape.watch(value);
  const DTensor y = function(values);
  std::vector<at::Tensor> list;
  const Inputs sources(values.begin(), values.begin() + 3);
  for (const DTensor& gradient : tape.gradient(ops::sum(y * y), sources)) {
    list.push_back(gradient.full().clone());
  }
  return list;
}

}  // namespace

TEST_CASE("attention is softmax(scores) · value in every layout") {
  const double usual = 1 / std::sqrt(3.0);
  const auto in = operands(3, 4);
  CHECK(wrong_values(in, attending({}), by_hand(in, usual, false)) == "");
  CHECK(wrong_values(in, attending({.scale = 0.3}), by_hand(in, 0.3, false)) == "");
  CHECK(wrong_values(in, attending({.causal = true}), by_hand(in, usual, true)) == "");
  const auto more = operands(4, 3);
  CHECK(wrong_values(more, attending({.causal = true}), by_hand(more, usual, true)) == "");
  CHECK(wrong_gradients(more, attending({.causal = true})) == "");
}

TEST_CASE("attention's mask may lack axes and broadcast along others") {
  const double usual = 1 / std::sqrt(3.0);
  const at::Tensor pattern = at::randint(0, 2, {2, 2, 3, 4}).to(at::kBool);
  for (const bool causal : {false, true}) {
    for (const at::Tensor& mask : {pattern, pattern[0], pattern.narrow(1, 0, 1),
                                   pattern.narrow(2, 0, 1), pattern[1][0], pattern[0][1][2]}) {
      auto in = operands(3, 4);
      const at::Tensor expected = by_hand(in, usual, causal, mask);
      in.push_back(mask);
      INFO(mask.sizes() << (causal ? ", causal" : ""));
      CHECK(wrong_values(in, attending({.causal = causal}), expected) == "");
    }
  }
}

TEST_CASE("a step that may attend to nothing gives the mean of the values, or zeros") {
  auto in = operands(3, 4);
  at::Tensor mask = at::ones({2, 1, 3, 4}, at::kBool);
  mask.select(2, 1).fill_(false);
  mask.select(3, 0).fill_(false);
  const double usual = 1 / std::sqrt(3.0);
  for (const bool causal : {false, true}) {
    at::Tensor expected = by_hand(in, usual, causal, mask);
    CHECK(difference(expected.select(1, 1), in[2].mean(1), 1e-12, 1e-12) == "");
    auto masked = in;
    masked.push_back(mask);
    CHECK(wrong_values(masked, attending({.causal = causal}), expected) == "");
    CHECK(wrong_gradients(masked, attending({.causal = causal})) == "");
    expected.select(1, 1).zero_();
    // The first causal step may attend only to itself, which the mask forbids.
    if (causal) expected.select(1, 0).zero_();
    CHECK(wrong_values(masked, attending({.causal = causal, .zeros = true}), expected) == "");
    CHECK(wrong_gradients(masked, attending({.causal = causal, .zeros = true})) == "");
  }
}

TEST_CASE("attention in each dtype equals float64 attention, gradients included") {
  const auto exact = operands(70, 600);
  at::Tensor mask = at::rand({2, 1, 70, 600}).gt(0.5);
  // All of the first keys of a kernel's block.
  mask.narrow(3, 0, 550).fill_(false);
  mask.select(2, 7).fill_(false);
  const std::pair<at::ScalarType, double> dtypes[] = {
      {at::kFloat, 1e-5}, {at::kBFloat16, 4e-2}, {at::kHalf, 5e-3}};
  for (const bool masked : {false, true}) {
    const Function attend = attending({.causal = !masked});
    const auto with_mask = [&](std::vector<at::Tensor> in) {
      if (masked) in.push_back(mask);
      return in;
    };
    const auto expected = gradients(with_mask(exact), attend);
    for (const auto& [dtype, tolerance] : dtypes) {
      INFO(dtype << (masked ? ", masked" : ", causal"));
      std::vector<at::Tensor> in;
      for (const at::Tensor& each : exact) in.push_back(each.to(dtype));
      Inputs values;
      for (const at::Tensor& each : with_mask(in)) values.push_back(replicated(each));
      const DTensor y = attend(values);
      CHECK(y.dtype() == dtype);
      CHECK(difference(y.full().to(at::kDouble),
                       by_hand(exact, 1 / std::sqrt(3.0), !masked, masked ? mask : at::Tensor()),
                       tolerance, tolerance) == "");
      const auto actual = gradients(with_mask(in), attend);
      for (size_t i = 0; i < 3; ++i) {
        CHECK(actual[i].scalar_type() == dtype);
        CHECK(difference(actual[i].to(at::kDouble), expected[i], 2 * tolerance, 2 * tolerance) ==
              "");
      }
    }
  }
}

TEST_CASE("attention over a sharded batch and sharded heads costs nothing") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Layout layout({"batch", unsharded, "model", unsharded}, mesh);
  GradientTape tape;
  Inputs in;
  for (const at::Tensor& full : operands(3, 4)) in.push_back(pack(full, layout));
  for (const DTensor& value : in) tape.watch(value);
  const DTensor mask = pack(at::ones({2, 1, 1, 4}, at::kBool),
                            Layout({"batch", unsharded, unsharded, unsharded}, mesh));
  CommLog comm;
  const CommLogScope scope(comm);
  const DTensor y = ops::attention(in[0], in[1], in[2], mask);
  CHECK(y.layout() == layout);
  GradientOptions options;
  options.output_gradient = y;
  for (const DTensor& gradient : tape.gradient(y, in, options)) {
    CHECK(gradient.layout() == layout);
  }
  CHECK(comm.entries().empty());
}

TEST_CASE("attention refuses invalid arguments in one line") {
  const auto call = [](const Shape& q, const Shape& k, const Shape& v, const DTensor& mask = {}) {
    return error_line([&] { ops::attention(ones(q), ones(k), ones(v), mask); });
  };
  CHECK_THAT(call({2, 3, 4}, {2, 3, 4}, {2, 3, 4}), Contains("[attention]"));
  CHECK_THAT(call({2, 3, 4, 5}, {2, 6, 3, 5}, {2, 6, 4, 5}), Contains("(2, 6, 3, 5)"));
  CHECK_THAT(call({2, 3, 4, 5}, {2, 6, 4, 5}, {2, 7, 4, 5}), Contains("(2, 7, 4, 5)"));
  CHECK_THAT(call({2, 3, 4, 5}, {2, 0, 4, 5}, {2, 0, 4, 5}),
             Contains("S, dim and width must be at least 1"));
  const Shape q = {2, 3, 4, 5}, k = {2, 6, 4, 5};
  CHECK_THAT(call(q, k, k, ones({2, 4, 3, 6}, at::kDouble)), Contains("a mask is bool"));
  CHECK_THAT(call(q, k, k, replicated(at::ones({2, 3, 3, 6}, at::kBool))),
             Contains("(2, 3, 3, 6)"));
  CHECK_THAT(call(q, k, k, replicated(at::ones({2, 4, 3, 7}, at::kBool))),
             Contains("(2, 4, 3, 6)"));
  CHECK_THAT(error_line([&] { ops::attention(ones(q, at::kLong), ones(k), ones(k)); }),
             Contains("floating dtype"));
  CHECK_THAT(error_line([&] { ops::attention(ones(q), ones(k), ones(k, at::kDouble)); }),
             Contains("one dtype"));
}

TEST_CASE("attention has no second derivative and says so") {
  GradientTape outer;
  Inputs in;
  for (const at::Tensor& full : operands(3, 3)) in.push_back(replicated(full));
  outer.watch(in[0]);
  GradientTape inner;
  inner.watch(in[0]);
  const DTensor first = inner.gradient(ops::sum(ops::attention(in[0], in[1], in[2])), in[0]);
  CHECK_THAT(error_line([&] { outer.gradient(ops::sum(first), in[0]); }),
             Contains("attention_grad") && Contains("derivative"));
}

}  // namespace attention_test
