#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <tessera/framework/ops/attention/internal/local_attention.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// Returns (batch…, steps, heads, features) as ATen's (n, heads, steps, features); a view if the
/// features are contiguous.
at::Tensor heads_first(const at::Tensor& x);
/// Returns ATen's (n, heads, steps, features) as (batch…, steps, heads, features), with the batch
/// axes and steps of `like`.
at::Tensor steps_first(const at::Tensor& x, const at::Tensor& like);

/// The attributes, and the terms of rules, that the attention operations share. Inputs are query,
/// key and value; for gradients also the output, the log-sum-exp and the output's gradient; then
/// masks and, last, lengths.
struct AttentionTerms {
  std::optional<double> scale = std::nullopt;
  bool causal = false, zeros = false;
  std::optional<int64_t> reach = std::nullopt;  ///< the window option
  auto attributes() const { return std::tie(scale, causal, zeros, reach); }

  /// Index of the first mask.
  static constexpr size_t values_masks = 3, gradients_masks = 6;

  static int64_t steps_axis(const Specs& in) { return in[0].rank() - 3; }
  static int64_t heads_axis(const Specs& in) { return in[0].rank() - 2; }
  /// Returns the number of query heads per head of key and value.
  static int64_t group(const Specs& in);
  /// Returns the rule's axes of batches, steps, heads and features. Shared heads are a window: the
  /// heads that the query's heads read.
  static std::string term(const Specs& in, const std::string& steps, const std::string& features);
  /// Returns the rule's axes of the log-sum-exp.
  static std::string sums(const Specs& in);
  /// Returns ", " and the rule's axes for each input from `first` on: masks and lengths.
  static std::string masks(const Specs& in, size_t first, const std::string& keys = "s");
  Interval window(size_t input, int64_t axis, Interval out, const Specs& in) const;

  /// Infers output and log-sum-exp. Throws ShapeError, ConfigError.
  Specs infer_values(std::string_view name, const Specs& in) const;
  /// Infers the gradients of query, key and value; those of key and value are per query head.
  static Specs infer_gradients(const Specs& in);

  /// Returns a block's part of the global attention, without masks.
  BlockAttention block_attention(const LocalArgs& in) const;
  /// Returns a block's masks (n or 1, heads or 1, T or 1, S or 1), from input `first` on: bool, or
  /// numbers to add to the scores.
  static std::vector<at::Tensor> masks_of(const LocalArgs& in, size_t first);
  /// Computes output and log-sum-exp of one block.
  Tensors values(const LocalArgs& in) const;
  /// Computes the gradients of query, key and value of one block.
  Tensors gradients(const LocalArgs& in) const;
  /// Computes one block's gradient of a numeric mask; `mask` counts from gradients_masks on.
  at::Tensor mask_gradient(const LocalArgs& in, size_t mask) const;
};

/// Converts output and log-sum-exp to an operation's outputs; `query` is the block's query.
Tensors attention_outputs(const AttentionResult& result, const at::Tensor& query);

/// Computes the gradient of an attention operation. `gradients` runs the operation that computes
/// those of query, key and value, the latter two per query head.
Grads attention_gradient(const AttentionTerms& terms, const Saved& saved, const Cotangents& dys,
                         Needs needs,
                         const std::function<Grads(const std::vector<DTensor>&)>& gradients);

}  // namespace tessera::detail
