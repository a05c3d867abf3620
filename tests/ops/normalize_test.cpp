#include <tessera/framework/ops/internal/normalize.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/norm_kernels.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/second_derivatives.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace normalize_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Values = std::vector<DTensor>;

/// Shapes of x and of its weights, and the reduced axes.
struct Case {
  Shape x, weights;
  std::vector<int64_t> axes;
};
/// Batch, layer, group and instance normalization, and shapes with axes of extent 1.
const Case cases[] = {{{3, 2, 2, 4}, {1, 1, 1, 4}, {0, 1, 2}},
                      {{3, 5}, {1, 5}, {1}},
                      {{2, 3, 2, 2}, {1, 1, 2, 2}, {1, 3}},
                      {{2, 3, 4}, {1, 1, 4}, {1}},
                      {{6, 1}, {1, 1}, {0}},
                      {{4, 1, 3}, {1, 1, 3}, {0, 1}}};

/// x, scale and offset -> the normalized x.
Values normalized(const Case& c, bool centered, const Values& in) {
  return {normalized_over(in[0], in[1], in[2], c.weights, c.axes, 0.1, centered)};
}

std::vector<at::Tensor> random_inputs(const Case& c) {
  return {random_values({c.x}, 1), random_values({c.weights}, 2), random_values({c.weights}, 3)};
}

/// Returns the value and the gradients of a weighted sum of it, composed of ATen operations.
std::vector<at::Tensor> composed(const Case& c, bool centered, const std::vector<at::Tensor>& in,
                                 const at::Tensor& upstream) {
  const double n = double(in[0].numel()) / double(in[0].sum(c.axes).numel());
  const auto mean = [&](const at::Tensor& v) { return v.mean(c.axes, true); };
  const at::Tensor shifted = centered ? in[0] - mean(in[0]) : in[0];
  const at::Tensor factor = at::rsqrt(mean(shifted * shifted) + 0.1), h = shifted * factor;
  const at::Tensor g = upstream * in[1];
  at::Tensor dx = g - h * mean(g * h);
  if (centered) dx = dx - mean(g);
  const auto to_weights = [&](const at::Tensor& v) { return at::sum_to(v, c.weights); };
  CHECK(n >= 1);
  return {h * in[1] + in[2], dx * factor, to_weights(upstream * h), to_weights(upstream)};
}

std::vector<at::Tensor> actual(const Case& c, bool centered, const std::vector<at::Tensor>& in,
                               const at::Tensor& upstream, const std::vector<Layout>& layouts) {
  Values values;
  GradientTape tape;
  for (size_t i = 0; i < in.size(); ++i) {
    values.push_back(pack(in[i], layouts[i]));
    tape.watch(values.back());
  }
  const DTensor y = normalized(c, centered, values)[0];
  const DTensor loss = ops::sum(y * pack(upstream, layouts[0]));
  std::vector<at::Tensor> all = {y.full()};
  for (const DTensor& gradient : tape.gradient(loss, values)) all.push_back(gradient.full());
  return all;
}

}  // namespace

TEST_CASE("normalization and its gradients in all layouts are those of composed operations") {
  for (const Case& c : cases) {
    REQUIRE(can_normalize(pack(at::zeros(c.x)), c.weights, c.axes));
    for (const bool centered : {true, false}) {
      for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
        std::vector<at::Tensor> in = random_inputs(c);
        const at::Tensor upstream = random_values({c.x}, 4);
        const std::vector<at::Tensor> expected = composed(c, centered, in, upstream);
        for (at::Tensor& each : in) each = each.to(dtype);
        for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2}, {4}, {2, 2}}) {
          const Mesh mesh = virtual_mesh(sizes);
          const Layout plain = Layout::replicated(mesh, int64_t(c.x.size()));
          for (const Layout& layout : all_layouts(mesh, int64_t(c.x.size()))) {
            INFO(to_string(c.x) << " " << layout.describe() << (centered ? "" : " root"));
            const std::vector<at::Tensor> got =
                actual(c, centered, in, upstream.to(dtype), {layout, plain, plain});
            const double tolerance = dtype == at::kDouble ? 1e-12 : 2e-6;
            for (size_t i = 0; i < got.size(); ++i) {
              CHECK(difference(got[i].to(at::kDouble), expected[i], tolerance, tolerance) == "");
            }
          }
        }
      }
    }
  }
}

TEST_CASE("normalization by own moments has the second derivatives of finite differences") {
  for (const Case& c : cases) {
    for (const bool centered : {true, false}) {
      INFO(to_string(c.x));
      const auto run = [&](const Values& in) { return normalized(c, centered, in); };
      CHECK(wrong_second_derivatives({.run = run, .sources = {0, 1, 2}, .name = "own"},
                                     random_inputs(c)) == "");
    }
  }
}

TEST_CASE("moments keep their digits where the mean is large") {
  const at::Tensor x = (random_values({{4096, 3}}, 5) + 1e4).to(at::kFloat);
  const DTensor moments = norm_moments(pack(x), {1, 3}, {0});
  const auto [variance, mean] = at::var_mean(x.to(at::kDouble), at::IntArrayRef{0}, 0, true);
  CHECK(difference(moments.full()[0], mean, 1e-12, 0) == "");
  CHECK(difference(moments.full()[1], variance, 1e-5, 0) == "");
}

TEST_CASE("threads add up what one adds up") {
  // More rows and features than one thread takes, and features beyond a vector's width.
  for (const NormShape& shape : {NormShape{1, 3000, 67, 1}, NormShape{500, 1, 1, 301},
                                 NormShape{3, 200, 5, 40}, NormShape{3, 1000, 37, 1}}) {
    const int64_t all = shape.outer * shape.rows * shape.weights();
    const std::vector<int64_t> axes = {shape.outer, shape.rows, shape.groups, shape.features};
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      const auto random = [&](int64_t count, uint64_t seed) {
        return random_values({{count}}, seed).to(dtype);
      };
      const at::Tensor dy = random(all, 2);
      const NormBlock block{shape, random(all, 1), random(shape.moments(), 3),
                            random(shape.moments(), 4), random(shape.weights(), 5)};
      const auto wide = [&](const at::Tensor& x) { return x.to(at::kDouble).view(axes); };
      const auto moment = [&](const at::Tensor& x) {
        return x.to(at::kDouble).view({shape.outer, 1, shape.groups, 1});
      };
      const at::Tensor h = (wide(block.x) - moment(block.mean)) * moment(block.factor);
      const at::Tensor g =
          wide(dy) * block.scale.to(at::kDouble).view({shape.groups, shape.features});
      const auto rows = [&](const at::Tensor& x) { return x.sum(at::IntArrayRef{1, 3}).flatten(); };
      const auto weights = [&](const at::Tensor& x) {
        return x.sum(at::IntArrayRef{0, 1}).flatten();
      };
      const double tolerance = dtype == at::kDouble ? 1e-11 : 1e-4;
      const auto same = [&](const at::Tensor& a, const at::Tensor& b) {
        CHECK(difference(a.flatten().to(at::kDouble), b.flatten(), tolerance, tolerance) == "");
      };
      const at::Tensor x = wide(block.x);
      same(norm_sums(block), at::cat({rows(x), rows(x * x)}));
      const auto [sums, by_weight] = norm_gradient_sums(block, dy);
      same(sums, at::cat({rows(g), rows(g * h)}));
      same(by_weight, at::cat({weights(wide(dy)), weights(wide(dy) * h)}));
      const at::Tensor first = random(shape.moments(), 6), second = random(shape.moments(), 7);
      same(norm_gradient(block, dy, first, second),
           (g - moment(first) - h * moment(second)) * moment(block.factor));
    }
  }
}

TEST_CASE("bfloat16 is normalized in float32 and rounded once") {
  for (const NormShape& shape : {NormShape{1, 300, 67, 1}, NormShape{50, 1, 1, 301}}) {
    const int64_t all = shape.outer * shape.rows * shape.weights();
    const auto random = [](int64_t count, uint64_t seed) {
      return random_values({{count}}, seed).to(at::kFloat);
    };
    at::Tensor x = random(all, 1).to(at::kBFloat16);
    x.view({shape.outer * shape.rows, -1})[1].fill_(INFINITY);
    x[0] = NAN;
    const at::Tensor dy = random(all, 2).to(at::kBFloat16);
    const NormBlock narrow{shape, x, random(shape.moments(), 3), random(shape.moments(), 4),
                           random(shape.weights(), 5)};
    NormBlock wide = narrow;
    wide.x = x.to(at::kFloat);
    const auto same = [](const at::Tensor& actual, const at::Tensor& expected) {
      CHECK(difference(actual, expected.to(actual.scalar_type())) == "");
    };
    same(norm_sums(narrow), norm_sums(wide));
    const at::Tensor offset = random(shape.weights(), 6);
    CHECK(norm_apply(narrow, offset).scalar_type() == at::kBFloat16);
    same(norm_apply(narrow, offset), norm_apply(wide, offset));
    const auto [sums, by_weight] = norm_gradient_sums(narrow, dy);
    const auto [wide_sums, wide_by_weight] = norm_gradient_sums(wide, dy.to(at::kFloat));
    same(sums, wide_sums);
    same(by_weight, wide_by_weight);
    const at::Tensor first = random(shape.moments(), 7), second = random(shape.moments(), 8);
    same(norm_gradient(narrow, dy, first, second),
         norm_gradient(wide, dy.to(at::kFloat), first, second));
  }
}

}  // namespace normalize_test
