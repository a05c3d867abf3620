#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// The options of attention().
struct SdpaOptions {
  std::optional<double> scale = std::nullopt;  ///< scale of the scores (default: 1 / sqrt(dim))
  bool causal = false;  ///< whether step t attends to steps up to t only; needs no mask
  bool zeros = false;   ///< whether a fully masked step gives 0 instead of the values' mean
  /// Step t attends only to steps less than this far away: to itself alone for 1; with `causal`, to
  /// this many steps (sliding_window of keras.layers.MultiHeadAttention).
  std::optional<int64_t> window = std::nullopt;
  std::vector<DTensor> masks = {};  ///< further masks; a step attends to what all masks allow
  DTensor lengths = {};  ///< integers (batch…): how many keys, from the first on, each row has
  /// Whether the devices of a ring swap halves of their steps to balance their work (default: if
  /// `causal` without a window).
  std::optional<bool> zigzag = std::nullopt;
};

/// Computes softmax(scale · query · key) · value for each head; where ATen has a fused kernel, the
/// scores are never stored. query (batch…, T, heads, dim), key (batch…, S, heads, dim), value
/// (batch…, S, heads, width) -> (batch…, T, heads, width)
/// (torch.nn.functional.scaled_dot_product_attention, keras.ops.dot_product_attention).
///
/// Key and value may have fewer heads, a divisor of the query's: consecutive query heads then share
/// one (keras.layers.GroupQueryAttention), which is not repeated in memory. The optional mask is
/// broadcast to (batch…, heads, T, S): a bool mask says what each step may attend to; a mask of the
/// query's dtype is added to the scores (ALiBi, relative positions; -inf masks) and has a gradient.
/// `causal`, `window`, `lengths` and bool masks of extent 1 along T or S need no tensor of (T, S).
///
/// Batch axes, heads, T and the value's width may be sharded without communication; S and dim are
/// gathered. But keys and values that are as long as the query and sharded over the same k shards
/// stay sharded and are rotated (ring attention): k - 1 hops forward; backward k - 1, and one more
/// send returns their gradients; fewer hops where a causal window ends earlier. With `zigzag`, half
/// of each shard is swapped before and after. Pass keys and values replicated to gather them
/// instead. If query heads are sharded, each block uses the shared heads that its own heads read
/// and fetches those that are stored elsewhere: less than two heads of key and value per device if
/// shared heads are sharded the same way, and for their gradients less than two groups of query
/// heads. Throws ShapeError for shapes that do not fit, ConfigError for dtypes and a window
/// below 1.
DTensor attention(const DTensor& query, const DTensor& key, const DTensor& value,
                  const DTensor& mask = {}, const SdpaOptions& options = {});

/// Returns attention() and the log-sum-exp of each step's scores, (batch…, heads, T), float32 or
/// wider, which weights the outputs for several parts of the keys when they are combined (jax.nn's
/// dot_product_attention with return_residual). Both have gradients.
std::pair<DTensor, DTensor> attention_and_logsumexp(const DTensor& query, const DTensor& key,
                                                    const DTensor& value, const DTensor& mask = {},
                                                    const SdpaOptions& options = {});

}  // namespace tessera::ops
