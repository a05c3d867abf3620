#include <tessera/framework/ops/internal/norm_axes.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>

namespace tessera::detail {

namespace {

bool has_axis(const std::vector<int64_t>& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Whether the axes of x are, in this order, neither reduced nor weighted, only reduced, only
/// weighted, both; those of extent 1 lie anywhere.
bool in_order(const NormAxes& norm, const Shape& x) {
  int last = 0;
  for (size_t a = 0; a < x.size(); ++a) {
    if (x[a] == 1) continue;
    const auto axis = static_cast<int64_t>(a);
    const int kind = (norm.weighs(axis) ? 2 : 0) + (norm.reduces(axis) ? 1 : 0);
    if (kind < last) return false;
    last = kind;
  }
  return true;
}

}  // namespace

bool NormAxes::reduces(int64_t axis) const { return has_axis(reduced, axis); }

bool NormAxes::weighs(int64_t axis) const { return has_axis(weighted, axis); }

std::string NormAxes::rows(const Spec& x) {
  std::string text;
  for (int64_t a = 0; a < x.rank(); ++a) text += str(" a", a);
  return text;
}

std::string NormAxes::moments(const Spec& x) const {
  std::string text = " .";
  for (int64_t a = 0; a < x.rank(); ++a) text += reduces(a) ? " ." : str(" a", a);
  return text;
}

std::string NormAxes::weight(const Spec& x) const {
  std::string text;
  for (int64_t a = 0; a < x.rank(); ++a) text += weighs(a) ? str(" a", a) : " .";
  return text;
}

bool NormAxes::has_features() const {
  return std::any_of(reduced.begin(), reduced.end(), [this](int64_t a) { return weighs(a); });
}

Shape NormAxes::moments_shape(const Shape& x) const {
  Shape shape = {2};
  for (size_t a = 0; a < x.size(); ++a) shape.push_back(reduces(int64_t(a)) ? 1 : x[a]);
  return shape;
}

Shape NormAxes::pairs_of(Shape shape) {
  shape.insert(shape.begin(), 2);
  return shape;
}

double NormAxes::count(const Shape& x) const {
  double product = 1;
  for (const int64_t a : reduced) product *= static_cast<double>(x[size_t(a)]);
  return std::max(product, 1.0);
}

NormShape NormAxes::shape_of(const at::Tensor& x) const {
  NormShape shape;
  for (int64_t a = 0; a < x.dim(); ++a) {
    int64_t& extent = reduces(a) ? (weighs(a) ? shape.features : shape.rows)
                                 : (weighs(a) ? shape.groups : shape.outer);
    extent *= x.size(a);
  }
  return shape;
}

NormBlock NormAxes::block_of(const at::Tensor& x) const { return {shape_of(x), dense(x)}; }

NormBlock NormAxes::block_of(const at::Tensor& x, const at::Tensor& moments,
                             const at::Tensor& scale, double epsilon) const {
  NormBlock block = block_of(x);
  const at::ScalarType dtype = at::toOpMathType(block.x.scalar_type());
  const at::Tensor wide = moments.to(at::kDouble);
  block.mean = wide[0].to(dtype).contiguous();
  block.factor = at::rsqrt(wide[1] + epsilon).to(dtype).contiguous();
  if (scale.defined()) block.scale = scale.to(dtype).contiguous();
  return block;
}

at::Tensor NormAxes::dense(const at::Tensor& x) {
  if (x.is_cpu() && x.scalar_type() == at::kBFloat16) return x.contiguous();
  return x.to(at::toOpMathType(x.scalar_type())).contiguous();
}

at::Tensor NormAxes::moments_view(const at::Tensor& pairs, const at::Tensor& x) const {
  return pairs.view(moments_shape(x.sizes().vec()));
}

std::optional<NormAxes> norm_axes_of(const Shape& x, const Shape& weights, const ops::Axes& axes) {
  if (weights.size() != x.size()) return std::nullopt;
  NormAxes norm{axes, {}};
  for (size_t a = 0; a < x.size(); ++a) {
    if (weights[a] != 1 && weights[a] != x[a]) return std::nullopt;
    if (weights[a] != 1) norm.weighted.push_back(static_cast<int64_t>(a));
  }
  if (!in_order(norm, x)) return std::nullopt;
  return norm;
}

void check_norm_axes(std::string_view op, const NormAxes& norm, const Specs& in) {
  check_floating(op, in[0]);
  if (in_order(norm, in[0].shape)) return;
  throw ShapeError(std::string(op),
                   "the axes are outer, reduced, weighted, and both, in this order",
                   to_string(in[0].shape), "transpose the input");
}

const std::vector<NormCase>& norm_cases() {
  static const std::vector<NormCase> all = {
      {{3, 2, 4}, {1, 1, 4}, {{0, 1}, {2}}},
      {{3, 4}, {1, 4}, {{1}, {1}}},
      {{2, 3, 2, 2}, {1, 1, 2, 2}, {{1, 3}, {2, 3}}},
      {{2, 3, 4}, {1, 1, 4}, {{1}, {2}}},
      {{3, 2, 4}, {1, 1, 4}, {{0, 1}, {2}}, FusedActivation::relu},
      {{3, 4}, {1, 4}, {{1}, {1}}, FusedActivation::relu6}};
  return all;
}

}  // namespace tessera::detail
