#pragma once

#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// The output, and the log-sum-exp (lse) of each step's scores, (n, heads, T).
using AttentionResult = std::pair<at::Tensor, at::Tensor>;

/// Attention of (n, heads, steps, features), computed by one of ATen's fused kernels, or by the
/// formula where there is none. A fully masked step gives any number or NaN.
struct AttentionCall {
  at::Tensor query, key, value;
  double scale = 1;
  bool causal = false;
  std::optional<at::Tensor> bias = {};  ///< added to the scores: -inf for what is masked
  /// Whether the value's features are sharded, so that other devices compute the same log-sum-exp:
  /// all of them use the formula, since fused kernels, which need as many features as the query
  /// has, round differently.
  bool value_is_sharded = false;

  AttentionResult forward() const;
  /// Returns the gradients of query, key and value.
  Tensors backward(const at::Tensor& dy, const at::Tensor& y, const at::Tensor& lse) const;
  /// Returns the softmax of the scores, and the gradient of the scores; both (n, heads, T, S).
  std::pair<at::Tensor, at::Tensor> softmax_and_grad(const at::Tensor& dy, const at::Tensor& y,
                                                     const at::Tensor& lse) const;
  /// Returns whether the kernel itself maps query heads to shared heads of key and value.
  bool supports_groups() const;

 private:
  /// ATen's fused kernels; none: the formula.
  enum class Kernel { cpu, flash, efficient, none };
  Kernel kernel() const;
  at::Tensor scores() const;
};

}  // namespace tessera::detail
