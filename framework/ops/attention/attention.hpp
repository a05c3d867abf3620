#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// What attention() does beside its plain form.
struct AttentionForm {
  std::optional<double> scale = std::nullopt;  ///< of the scores; 1 / sqrt(dim) if absent
  bool causal = false;  ///< step t attends to the steps up to t alone; needs no mask
  bool zeros = false;   ///< a step that may attend to nothing gives 0, not the values' mean
  /// Step t attends to the steps nearer than this alone: to its own for 1, and with `causal` to as
  /// many as this says (sliding_window of keras.layers.MultiHeadAttention).
  std::optional<int64_t> window = std::nullopt;
  std::vector<DTensor> masks = {};  ///< more masks; a step attends to what all of them allow
  DTensor lengths = {};  ///< whole numbers (batch…): of each row that many first keys count
  /// Whether the devices of a ring swap half of their steps, so that each of them has as much to
  /// compute; if absent, they do where it is `causal` without a window.
  std::optional<bool> zigzag = std::nullopt;
};

/// softmax(scale · query · key) · value for each head, without the scores in memory where ATen has
/// a fused kernel: query (batch…, T, heads, dim), key (batch…, S, heads, dim), value (batch…, S,
/// heads, width) -> (batch…, T, heads, width) (torch.nn.functional.scaled_dot_product_attention,
/// keras.ops.dot_product_attention). Key and value may have fewer heads, a divisor of the query's:
/// then consecutive heads of the query share one (keras.layers.GroupQueryAttention), which is not
/// repeated in memory. The mask, broadcast to (batch…, heads, T, S), may be left out: bool, it says
/// what each step may attend to; numbers of the query's dtype are added to the scores (ALiBi,
/// relative positions), -inf for what it may not, and have gradients. `causal`, `window`, `lengths`
/// and bool masks of extent 1 along T or S make no tensor of (T, S).
///
/// Batch axes, heads, T and the value's width may be cut, at no cost; S and dim are gathered. But
/// keys and values that are as long as the query and cut over the same k shards stay cut and go
/// round (ring attention): k - 1 hops forward, and k - 1 backward, behind which their gradients are
/// home after k; fewer where a causal window ends before. With `zigzag` half of each part changes
/// places before and after. To have keys and values gathered, give them whole. Where the query's
/// heads are cut, blocks take the shared heads that theirs read: what lies elsewhere is
/// fetched, less than two heads of key and value for each device where shared heads are cut alike,
/// and of their gradients less than two of the query's groups. Throws ShapeError for what does not
/// fit, ConfigError for dtypes and a window below 1.
DTensor attention(const DTensor& query, const DTensor& key, const DTensor& value,
                  const DTensor& mask = {}, const AttentionForm& form = {});

/// The same, and the logarithm of the sum of each step's exponentials, (batch…, heads, T), float32
/// at least: of results of several parts of the keys those weigh each (jax.nn's
/// dot_product_attention with return_residual). Both have gradients.
std::pair<DTensor, DTensor> attention_and_logsumexp(const DTensor& query, const DTensor& key,
                                                    const DTensor& value, const DTensor& mask = {},
                                                    const AttentionForm& form = {});

}  // namespace tessera::ops
