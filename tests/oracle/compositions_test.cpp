#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"

namespace compositions_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using D = DTensor;
using FullTensors = std::vector<Tensor>;
using DTensors = std::vector<DTensor>;

/// Returns the failures of a function of DTensors against ATen on the same tensors, in all layouts.
std::string failures(const std::string& name, const std::vector<SampleInput>& inputs,
                     const std::function<DTensors(const DTensors&)>& run,
                     const std::function<FullTensors(const FullTensors&)>& reference) {
  OracleStats stats;
  return joined(check_case({name, inputs, run, reference}, stats));
}

/// With one input and one result.
std::string failures(const std::string& name, const SampleInput& input, D (*run)(const D&),
                     Tensor (*reference)(const Tensor&)) {
  return failures(
      name, std::vector<SampleInput>{input},
      [run](const DTensors& in) { return DTensors{run(in[0])}; },
      [reference](const FullTensors& in) { return FullTensors{reference(in[0])}; });
}

/// Numbers without ties, for functions that have no gradient.
SampleInput distinct(Shape shape) {
  SampleInput input{std::move(shape)};
  input.distinct = true;
  input.differentiable = false;
  return input;
}

}  // namespace

TEST_CASE("reductions composed of several operations hold in all layouts") {
  CHECK(failures(
            "mean", {{4, 3}}, [](const D& x) { return ops::mean(x, {0}); },
            [](const Tensor& x) { return x.mean(0); }) == "");
  CHECK(failures(
            "mean of all", {{5, 3}}, [](const D& x) { return ops::mean(x); },
            [](const Tensor& x) { return x.mean(); }) == "");
  CHECK(failures(
            "logsumexp", {{4, 3}}, [](const D& x) { return ops::logsumexp(x, {1}); },
            [](const Tensor& x) { return x.logsumexp(1); }) == "");
  CHECK(failures(
            "logsumexp, kept", {{2, 5}}, [](const D& x) { return ops::logsumexp(x, {}, true); },
            [](const Tensor& x) {
              return x.flatten().logsumexp(0).view({1, 1});
            }) == "");
  CHECK(failures(
            "variance", {{4, 3}}, [](const D& x) { return ops::variance(x, {0}); },
            [](const Tensor& x) { return x.var(0, /*unbiased=*/false); }) == "");
  CHECK(failures(
            "moments", {{{2, 3, 2}}},
            [](const DTensors& in) {
              const auto [mean, variance] = ops::moments(in[0], {0, 2});
              return DTensors{mean, variance};
            },
            [](const FullTensors& in) {
              const Tensor rows = in[0].permute({1, 0, 2}).flatten(1);
              return FullTensors{rows.mean(1), rows.var(1, /*unbiased=*/false)};
            }) == "");
}

TEST_CASE("indices of extremes hold in all layouts, the first of equal elements") {
  CHECK(failures(
            "argmax", distinct({4, 3}), [](const D& x) { return ops::argmax(x); },
            [](const Tensor& x) { return x.argmax(1); }) == "");
  CHECK(failures(
            "argmin", distinct({4, 3}), [](const D& x) { return ops::argmin(x, 0); },
            [](const Tensor& x) { return x.argmin(0); }) == "");
  // ATen does not specify which of equal elements it returns.
  CHECK(failures(
            "argmax of equals", {{3, 7}, at::kLong, 0, 3},
            [](const D& x) { return ops::argmax(x); },
            [](const Tensor& x) {
              const Tensor index = at::arange(7).expand({3, 7});
              return at::where(x.eq(x.amax({1}, true)), index, 7).amin({1});
            }) == "");
}

TEST_CASE("functions of shape hold in all layouts") {
  CHECK(failures(
            "flatten", {{4, 2, 3}}, [](const D& x) { return ops::flatten(x, 1); },
            [](const Tensor& x) { return x.flatten(1); }) == "");
  CHECK(failures(
            "expand_dims", {{4, 3}}, [](const D& x) { return ops::expand_dims(x, -1); },
            [](const Tensor& x) { return x.unsqueeze(-1); }) == "");
  CHECK(failures(
            "squeeze", {{1, 4, 1}}, [](const D& x) { return ops::squeeze(x, {0}); },
            [](const Tensor& x) { return x.squeeze(0); }) == "");
  CHECK(failures(
            "tile", {{3, 2}},
            [](const D& x) {
              return ops::tile(x, {2, 3});
            },
            [](const Tensor& x) {
              return x.repeat({2, 3});
            }) == "");
  CHECK(failures(
            "split", {{{6, 2}}}, [](const DTensors& in) { return ops::split(in[0], 3); },
            [](const FullTensors& in) { return in[0].split(2); }) == "");
  CHECK(failures(
            "stack", {{{3, 2}}, {{3, 2}}},
            [](const DTensors& in) { return DTensors{ops::stack(in, 1)}; },
            [](const FullTensors& in) { return FullTensors{at::stack(in, 1)}; }) == "");
  CHECK(failures(
            "unstack", {{{3, 2}}}, [](const DTensors& in) { return ops::unstack(in[0], 1); },
            [](const FullTensors& in) { return in[0].unbind(1); }) == "");
}

TEST_CASE("a value used twice and a value that is relaid out hold in all layouts") {
  CHECK(failures(
            "x times its transpose", {{3, 3}},
            [](const D& x) { return ops::matmul(x, ops::transpose(x)) + x; },
            [](const Tensor& x) { return x.mm(x.t()) + x; }) == "");
  CHECK(failures(
            "relayout_like", {{{4, 3}}, {{4, 3}}},
            [](const DTensors& in) { return DTensors{relayout_like(in[0], in[1]) * in[1]}; },
            [](const FullTensors& in) { return FullTensors{in[0] * in[1]}; }) == "");
  CHECK(failures(
            "a pending sum that is used twice", {{{4, 3}}, {{3, 2}}},
            [](const DTensors& in) {
              const D y = ops::matmul(in[0], in[1]);
              return DTensors{ops::exp(y) + y, y - ops::sum(y, {0})};
            },
            [](const FullTensors& in) {
              const Tensor y = in[0].mm(in[1]);
              return FullTensors{y.exp() + y, y - y.sum(0)};
            }) == "");
}

TEST_CASE("blocks large enough for several threads hold in all layouts") {
  CHECK(failures(
            "matmul", {{{64, 40}, at::kFloat}, {{40, 32}, at::kFloat}},
            [](const DTensors& in) { return DTensors{ops::matmul(in[0], in[1])}; },
            [](const FullTensors& in) { return FullTensors{in[0].mm(in[1])}; }) == "");
}

}  // namespace compositions_test
