#pragma once

#include <optional>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// What attention() does beside its plain form.
struct AttentionForm {
  std::optional<double> scale = std::nullopt;  ///< of the scores; 1 / sqrt(dim) if absent
  bool causal = false;  ///< step t attends to the steps up to t alone; needs no mask
  bool zeros = false;   ///< a step that may attend to nothing gives 0, not the values' mean
};

/// softmax(scale · query · key) · value for each head, without the scores in memory where ATen has
/// a fused kernel: query (batch…, T, heads, dim), key (batch…, S, heads, dim), value (batch…, S,
/// heads, width) -> (batch…, T, heads, width) (torch.nn.functional.scaled_dot_product_attention,
/// keras.ops.dot_product_attention). The mask, bool, broadcast to (batch…, heads, T, S), says what
/// each step may attend to; it may be left out. Batch axes, heads and the value's width may be cut,
/// and T without `causal`, at no cost; S and dim are gathered. Throws ShapeError for what does not
/// fit, ConfigError for dtypes.
DTensor attention(const DTensor& query, const DTensor& key, const DTensor& value,
                  const DTensor& mask = {}, const AttentionForm& form = {});

}  // namespace tessera::ops
