#pragma once

#include <memory>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/internal/fused_activation.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera::detail {

class OpPlan;

/// Normalization in one pass for the moments and one for the result, and two for the gradients.
/// `axes` are the reduced axes, from 0. A weight, that is a scale or an offset, has x's rank and,
/// for each axis, x's extent or 1.

/// Whether the functions below pay off: on CPUs, where x's axes are, in this order, neither reduced
/// nor weighted, only reduced, only weighted, both. Axes of extent 1 lie anywhere.
bool can_normalize(const DTensor& x, const Shape& weights, const ops::Axes& axes);

/// Returns mean and biased variance of x, or, if not `centered`, 0 and the mean of the squares:
/// (2, …), where reduced axes have extent 1, in float64 from sums in float64. Sharded axes cost one
/// all-reduce of both. `weights` is the shape of the weights that the moments will be used with.
DTensor norm_moments(const DTensor& x, const Shape& weights, const ops::Axes& axes,
                     bool centered = true);

/// Returns the epsilon of an operation "norm_by".
double norm_epsilon(const OpInfo& info, const void* op);

/// Returns a plan of the operation with an activation behind norm_by(): "norm_by" itself, or
/// "norm_gradient_sums" or "norm_gradient", whose first input is then the gradient of the
/// activation's result, and whose last one is that result. Null for other operations. Throws what
/// OpPlan does.
std::shared_ptr<OpPlan> activated_norm(const OpInfo& info, const void* op,
                                       FusedActivation activation, std::vector<ShardingPtr> in);

/// Attributes of norm_by().
struct NormOptions {
  double epsilon = 1e-3;
  /// Whether `moments` are norm_moments() of this x: their part of the gradient is then added to
  /// that of x, which takes one pass instead of two, and they get none.
  bool own_moments = false;
  bool centered = true;
};
/// Returns (x - mean) / sqrt(variance + epsilon) · scale + offset, in x's shape and dtype, computed
/// in float32 or wider. `weights` is the shape of scale and offset; undefined ones are left out.
DTensor norm_by(const DTensor& x, const DTensor& moments, const DTensor& scale,
                const DTensor& offset, const Shape& weights, const ops::Axes& axes,
                const NormOptions& options);

/// Returns norm_by() x's own moments; where it does not apply, composed of other operations.
DTensor normalized_over(const DTensor& x, const DTensor& scale, const DTensor& offset,
                        const Shape& weights, const ops::Axes& axes, double epsilon,
                        bool centered = true);

}  // namespace tessera::detail
