#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <tessera/framework/ops/attention/internal/attention_call.hpp>

namespace tessera::detail {

/// What a block of attention is of the whole, and what its steps may attend to.
struct AttentionPart {
  double scale = 1;
  bool causal = false, zeros = false;  ///< as in ops::AttentionForm
  bool shares_sums = false;            ///< as in AttentionCall: the value has some features
  std::optional<int64_t> window;       ///< as in ops::AttentionForm
  int64_t first = 0;  ///< how many steps the query's first one is behind the first key
  /// These keys are some of those that the steps attend to: a step that may attend to none of them
  /// gives 0 and -inf as the logarithm of its sum, and no gradient.
  bool partial = false;
  Interval heads = {}, shared_heads = {};  ///< of the query; of key and value
  int64_t group = 1;                       ///< heads of the query for each of key and value
  /// (n or 1, heads or 1, T or 1, S or 1): bool, or numbers that are added to the scores.
  std::vector<at::Tensor> masks = {};
};

/// Heads of key and value that some heads of the query read.
Interval shared_heads(Interval heads, int64_t group);

/// Attention of one block, (n, heads, steps, features), on what ATen has for it. Where each step
/// has its own keys, steps are taken some at a time, so that no tensor has all of the scores.
class LocalAttention {
 public:
  /// Throws ShapeError for blocks that were not cut alike: ATen's kernels take one's word for it.
  LocalAttention(at::Tensor query, at::Tensor key, at::Tensor value, AttentionPart part);

  AttentionResult forward() const;
  /// Gradients of query, key and value: for each head of the query, also those of key and value.
  Tensors backward(const at::Tensor& dy, const at::Tensor& y, const at::Tensor& sums) const;
  /// The gradient of one of the masks of numbers, in its shape.
  at::Tensor mask_gradient(const at::Tensor& mask, const at::Tensor& dy, const at::Tensor& y,
                           const at::Tensor& sums) const;
  /// The steps that may attend to nothing, (n or 1, heads or 1, T, 1); undefined if there is none,
  /// where that is known at no cost. Of key it reads the shape alone.
  at::Tensor alone() const;

 private:
  /// Steps of the query that are computed at once, on the keys that any of them may attend to.
  struct Chunk {
    AttentionCall call;
    Interval rows, keys;
    at::Tensor alone = {};  ///< steps that may attend to nothing, if there may be any
  };

  void add_mask(const at::Tensor& mask);
  at::TensorOptions in_more_digits() const;
  Tensors new_gradients(const at::TensorOptions& sums) const;
  bool has_groups() const { return part_.group > 1; }
  bool takes_groups() const;
  LocalAttention of_shared(int64_t head) const;
  Interval heads_of(int64_t shared) const;
  AttentionResult by_groups() const;
  Tensors backward_by_groups(const at::Tensor& dy, const at::Tensor& y,
                             const at::Tensor& sums) const;

  bool is_plain() const;
  int64_t chunk_rows() const;
  Interval keys_of(Interval rows) const;
  at::Tensor open(Interval rows, Interval keys) const;
  Chunk whole() const;
  Chunk chunk(Interval rows) const;
  at::Tensor alone_among(Interval rows, const at::Tensor& open) const;
  void each_chunk(const std::function<void(const Chunk&)>& visit) const;
  void set_bias(Chunk& chunk, const at::Tensor& open) const;

  at::Tensor query_, key_, value_;
  AttentionPart part_;
  at::Tensor rows_, keys_, pairs_;  ///< masks: of steps, of keys, of both; undefined: none
  at::Tensor added_;                ///< sum of the masks of numbers, finite; undefined: none
};

}  // namespace tessera::detail
