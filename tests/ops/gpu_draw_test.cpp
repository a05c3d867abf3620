#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/gpu_draw.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace gpu_draw_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Slice = std::vector<Interval>;
constexpr Seed seed{-5, 1LL << 40};

at::Tensor empty_slice(const Slice& slice) {
  Shape shape;
  for (Interval part : slice) shape.push_back(part.size());
  return at::zeros(shape, at::kFloat);
}

/// Runs the GPU's kernel on the host, call by call, last call first.
void run_on_host(const kernels::DrawParameters& parameters) {
  for (uint64_t i = draw_calls(parameters); i-- > 0;) draw_kernel().on_host(&parameters, i);
}

at::Tensor by_kernel(kernels::DrawKind kind, const Shape& shape, const Slice& slice) {
  at::Tensor out = empty_slice(slice);
  kernels::DrawParameters parameters = draw_parameters(kind, {seed, shape, slice});
  parameters.a = 0.5F;
  parameters.b = kind == kernels::uniform_draw ? 3.0F - 0.5F : 3.0F;
  parameters.out = out.data_ptr<float>();
  run_on_host(parameters);
  return out;
}

at::Tensor by_host(kernels::DrawKind kind, const Shape& shape, const Slice& slice) {
  at::Tensor out = empty_slice(slice);
  float* const numbers = out.data_ptr<float>();
  if (kind == kernels::uniform_draw) {
    stateless_uniform(seed, shape, slice, 0.5F, 3, numbers);
  } else if (kind == kernels::normal_draw) {
    stateless_normal(seed, shape, slice, 0.5F, 3, numbers);
  } else {
    stateless_truncated_normal(seed, shape, slice, 0.5F, 3, numbers);
  }
  return out;
}

struct Case {
  Shape shape;
  Slice slice;
};

std::string text(const Slice& slice) {
  std::string all;
  for (Interval part : slice) all += str("[", part.lo, ", ", part.hi, ")");
  return all;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{}, {}},
      {{1}, {{0, 1}}},
      {{301}, {{0, 301}}},
      {{301}, {{150, 301}}},
      {{301}, {{3, 4}}},
      {{7, 9}, {{0, 7}, {0, 9}}},
      {{7, 9}, {{2, 5}, {0, 9}}},
      {{7, 9}, {{0, 7}, {4, 9}}},
      {{7, 9}, {{3, 6}, {1, 2}}},
      {{5, 4, 6}, {{1, 5}, {0, 4}, {0, 6}}},
      {{5, 4, 6}, {{0, 5}, {1, 3}, {0, 6}}},
      {{5, 4, 6}, {{2, 4}, {1, 3}, {3, 6}}},
      {{3, 1, 5, 2}, {{1, 3}, {0, 1}, {2, 4}, {0, 2}}},
  };
  return all;
}

}  // namespace

TEST_CASE("the GPU kernel draws the host's numbers bit for bit, in full and in slices") {
  for (const auto kind :
       {kernels::uniform_draw, kernels::normal_draw, kernels::truncated_normal_draw}) {
    for (const Case& c : cases()) {
      CAPTURE(int{kind}, c.shape, text(c.slice));
      CHECK(test::difference(by_kernel(kind, c.shape, c.slice), by_host(kind, c.shape, c.slice), 0,
                             0) == "");
    }
  }
}

TEST_CASE("the GPU kernel drops the host's elements") {
  for (const Case& c : cases()) {
    CAPTURE(c.shape, text(c.slice));
    const at::Tensor x = at::randn_like(empty_slice(c.slice));
    at::Tensor out = at::full_like(x, NAN);
    kernels::DrawParameters parameters =
        draw_parameters(kernels::dropout_draw, {seed, c.shape, c.slice});
    parameters.a = 0.4F;
    parameters.b = 1 / 0.6F;
    parameters.in = x.data_ptr<float>();
    parameters.out = out.data_ptr<float>();
    run_on_host(parameters);
    at::Tensor numbers = empty_slice(c.slice);
    stateless_uniform(seed, c.shape, c.slice, 0, 1, numbers.data_ptr<float>());
    const at::Tensor expected = at::where(numbers.ge(0.4F), x.mul(1 / 0.6F), at::zeros_like(x));
    CHECK(test::difference(out, expected, 0, 0) == "");
  }
}

TEST_CASE("a draw of more axes than the kernel supports is refused") {
  const Shape shape(14, 2);
  const Slice slice(14, Interval{0, 1});
  CHECK_THROWS_WITH(draw_parameters(kernels::uniform_draw, {seed, shape, slice}),
                    Catch::Matchers::Contains("at most 12 axes"));
}

}  // namespace gpu_draw_test
