#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/internal/fused_activation.hpp>
#include <tessera/framework/ops/internal/norm_kernels.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera::detail {

/// The reduced and weighted axes of a normalization, the terms of its operations' rules, and a
/// block as the kernels see it.
struct NormAxes {
  std::vector<int64_t> reduced, weighted;

  bool reduces(int64_t axis) const;
  bool weighs(int64_t axis) const;

  /// The terms of a rule for x, for (2, …) moments and for a weight.
  static std::string rows(const Spec& x);
  std::string moments(const Spec& x) const;
  std::string weight(const Spec& x) const;

  /// Whether an axis is reduced and weighted.
  bool has_features() const;
  Shape moments_shape(const Shape& x) const;
  static Shape pairs_of(Shape shape);
  /// Returns the number of elements of x from which one moment is taken, at least 1.
  double count(const Shape& x) const;

  NormShape shape_of(const at::Tensor& x) const;
  /// Returns a block of x with its sums.
  NormBlock block_of(const at::Tensor& x) const;
  /// Returns a block of x with its moments and scale.
  NormBlock block_of(const at::Tensor& x, const at::Tensor& moments, const at::Tensor& scale,
                     double epsilon) const;
  /// Returns a block as the kernels read it: these take bfloat16 on CPUs as it is.
  static at::Tensor dense(const at::Tensor& x);
  at::Tensor moments_view(const at::Tensor& pairs, const at::Tensor& x) const;
};

/// Returns the axes of weights of this shape; none if they do not fit x, or if x's axes are not, in
/// this order, neither reduced nor weighted, only reduced, only weighted, both.
std::optional<NormAxes> norm_axes_of(const Shape& x, const Shape& weights, const ops::Axes& axes);

/// Throws unless the first input is floating and its axes are in that order.
void check_norm_axes(std::string_view op, const NormAxes& norm, const Specs& in);

/// Shapes of x and of the weights of samples: batch, layer and group normalization, and one with
/// axes that are neither reduced nor weighted.
struct NormCase {
  Shape x, weights;
  NormAxes norm;
  FusedActivation activation = FusedActivation::none;
  Shape moments() const { return norm.moments_shape(x); }
};
const std::vector<NormCase>& norm_cases();

}  // namespace tessera::detail
