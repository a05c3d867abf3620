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

/// (batch…, steps, heads, features) as ATen's (n, heads, steps, features), a view where the
/// features lie side by side.
at::Tensor heads_first(const at::Tensor& x);
/// ATen's (n, heads, steps, features) with the batch and steps of another block.
at::Tensor steps_first(const at::Tensor& x, const at::Tensor& like);

/// What the operations of attention share: the attributes, and the terms of their rules. Inputs are
/// query, key and value; for gradients also the result, the logarithms of sums and the result's
/// gradient; then masks and, last, lengths.
struct AttentionTerms {
  std::optional<double> scale = std::nullopt;
  bool causal = false, zeros = false;
  std::optional<int64_t> reach = std::nullopt;  ///< the form's window
  auto attributes() const { return std::tie(scale, causal, zeros, reach); }

  /// Where masks begin.
  static constexpr size_t values_masks = 3, gradients_masks = 6;

  static int64_t steps_axis(const Specs& in) { return in[0].rank() - 3; }
  static int64_t heads_axis(const Specs& in) { return in[0].rank() - 2; }
  /// Heads of the query for each of key and value.
  static int64_t group(const Specs& in);
  /// Axes of batches, steps, heads and features. Shared heads are those that the query's read,
  /// wherever they lie.
  static std::string term(const Specs& in, const std::string& steps, const std::string& features);
  /// Axes of the logarithms of sums.
  static std::string sums(const Specs& in);
  /// ", " and each mask, and the numbers of keys, from this input on.
  static std::string masks(const Specs& in, size_t first, const std::string& keys = "s");
  Interval window(size_t input, int64_t axis, Interval out, const Specs& in) const;

  /// Result and logarithms of sums. Throws ShapeError, ConfigError.
  Specs infer_values(std::string_view name, const Specs& in) const;
  /// Gradients of query, key and value; those of key and value for each head of the query.
  static Specs infer_gradients(const Specs& in);

  /// What a block is of the whole, without masks.
  AttentionPart part_of(const LocalArgs& in) const;
  /// Masks (n or 1, heads or 1, T or 1, S or 1) of a block, from this input on: bool, or numbers.
  static std::vector<at::Tensor> masks_of(const LocalArgs& in, size_t first);
  /// Result and logarithms of sums of one block.
  Tensors values(const LocalArgs& in) const;
  /// Gradients of query, key and value of one block.
  Tensors gradients(const LocalArgs& in) const;
  /// The gradient of a mask of numbers by one block; `mask` counts from gradients_masks on.
  at::Tensor mask_gradient(const LocalArgs& in, size_t mask) const;
};

/// The result and the logarithms of its sums, (n, heads, T), as outputs of a block like `query`.
Tensors attention_outputs(const AttentionResult& result, const at::Tensor& query);

/// The gradient of an operation on these terms, by the operation that gives those of query, key and
/// value, the latter for each head of the query.
Grads attention_gradient(const AttentionTerms& terms, const Saved& saved, const Cotangents& dys,
                         Needs needs,
                         const std::function<Grads(const std::vector<DTensor>&)>& gradients);

}  // namespace tessera::detail
