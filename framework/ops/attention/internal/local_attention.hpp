#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <tessera/framework/ops/attention/internal/attention_call.hpp>

namespace tessera::detail {

/// A block's part of the global attention, and what its steps may attend to.
struct BlockAttention {
  double scale = 1;
  bool causal = false, zeros = false;  ///< see ops::SdpaOptions
  bool value_is_sharded = false;  ///< whether the value's features are sharded (see AttentionCall)
  std::optional<int64_t> window;  ///< see ops::SdpaOptions
  int64_t first = 0;              ///< index of the first query step, counted from the first key
  /// Whether these are only some of the keys that the steps attend to: a step that may attend to
  /// none of them gives 0, a log-sum-exp of -inf, and no gradient.
  bool partial = false;
  Interval heads = {}, shared_heads = {};  ///< global heads of the query; of key and value
  int64_t group = 1;                       ///< query heads per head of key and value
  /// (n or 1, heads or 1, T or 1, S or 1): bool, or numbers that are added to the scores.
  std::vector<at::Tensor> masks = {};
};

/// Returns the heads of key and value that these query heads read.
Interval shared_heads(Interval heads, int64_t group);

/// Attention of one block, (n, heads, steps, features), by ATen's kernels. Where each step has its
/// own keys, steps are computed in chunks, so that no tensor holds all scores.
class LocalAttention {
 public:
  /// Throws ShapeError unless the blocks are sharded the same way, which ATen's kernels do not
  /// check.
  LocalAttention(at::Tensor query, at::Tensor key, at::Tensor value, BlockAttention block);

  AttentionResult forward() const;
  /// Returns the gradients of query, key and value; those of key and value are per query head, too.
  Tensors backward(const at::Tensor& dy, const at::Tensor& y, const at::Tensor& lse) const;
  /// Returns the gradient of one of the numeric masks, in its shape.
  at::Tensor mask_gradient(const at::Tensor& mask, const at::Tensor& dy, const at::Tensor& y,
                           const at::Tensor& lse) const;
  /// Returns the mask of fully masked steps, (n or 1, heads or 1, T, 1); undefined if there are
  /// none and that is known without waiting for a GPU. Reads only the shape of the key.
  at::Tensor fully_masked() const;

 private:
  /// Steps of the query that are computed at once, with the keys that any of them may attend to.
  struct Chunk {
    AttentionCall call;
    Interval rows, keys;
    at::Tensor fully_masked = {};  ///< mask of fully masked steps; undefined: none
  };

  void add_mask(const at::Tensor& mask);
  at::TensorOptions accumulate_options() const;
  Tensors new_gradients(const at::TensorOptions& accumulated) const;
  bool has_groups() const { return block_.group > 1; }
  bool supports_groups() const;
  LocalAttention for_shared_head(int64_t head) const;
  Interval heads_of(int64_t shared) const;
  AttentionResult forward_by_groups() const;
  Tensors backward_by_groups(const at::Tensor& dy, const at::Tensor& y,
                             const at::Tensor& lse) const;

  bool is_plain() const;
  int64_t chunk_rows() const;
  Interval keys_of(Interval rows) const;
  at::Tensor allowed(Interval rows, Interval keys) const;
  Chunk all_steps() const;
  Chunk chunk(Interval rows) const;
  at::Tensor fully_masked_among(Interval rows, const at::Tensor& allowed) const;
  void for_each_chunk(const std::function<void(const Chunk&)>& visit) const;
  void set_bias(Chunk& chunk, const at::Tensor& allowed) const;

  at::Tensor query_, key_, value_;
  BlockAttention block_;
  at::Tensor rows_, keys_, pairs_;  ///< bool masks by step, by key, by both; undefined: none
  at::Tensor added_;                ///< sum of the numeric masks, finite; undefined: none
};

}  // namespace tessera::detail
