#pragma once

#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// The values and, for each step, the logarithm of its scores' sum: (n, heads, T).
using AttentionResult = std::pair<at::Tensor, at::Tensor>;

/// Attention of (n, heads, steps, features) as one kernel computes it: one of ATen's fused ones, or
/// by its formula where there is none. A step that may attend to nothing gives any number or NaN.
struct AttentionCall {
  at::Tensor query, key, value;
  double scale = 1;
  bool causal = false;
  std::optional<at::Tensor> bias = {};  ///< added to the scores: -inf for what is masked
  /// Others compute the same sums for other features of the value: all do so by the formula, as
  /// kernels, which want as many features as the query has, round sums otherwise.
  bool shares_sums = false;

  AttentionResult forward() const;
  /// Gradients of query, key and value.
  Tensors backward(const at::Tensor& dy, const at::Tensor& y, const at::Tensor& sums) const;
  /// For each score its share of its step, and its gradient; both (n, heads, T, S).
  std::pair<at::Tensor, at::Tensor> shares(const at::Tensor& dy, const at::Tensor& y,
                                           const at::Tensor& sums) const;
  /// Whether the kernel finds by itself the head of key and value that heads of the query share.
  bool takes_groups() const;

 private:
  /// ATen's fused kernels, by what they run on, or none.
  enum class Kernel { cpu, flash, efficient, none };
  Kernel kernel() const;
  at::Tensor scores() const;
};

}  // namespace tessera::detail
