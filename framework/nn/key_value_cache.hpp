#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The attention keys and values of past time steps, for autoregressive decoding. The model is
/// called on the new steps only; attention layers with use_causal_mask append theirs.
///
///     const auto cache = std::make_shared<KeyValueCache>();
///     DTensor logits = model(prompt, {.cache = cache});  // of all steps so far
///     logits = model(next, {.cache = cache});            // of one more, (batch, 1, …)
///
/// Results equal those of a call on all steps, provided that every other layer treats steps
/// independently (Dense, LayerNormalization, Embedding) or uses first_step(), and that each call of
/// the model calls each layer once, on the same batch rows. Cached tensors keep the layout of the
/// layers' keys and values.
class KeyValueCache {
 public:
  /// Returns the number of steps that `layer` has seen, then adds `steps` to it. For layers that
  /// depend on positions, such as position embeddings.
  int64_t first_step(const Layer& layer, int64_t steps);
  /// Appends `value` along axis 1 to the tensor cached for (layer, name) and returns the result.
  /// Throws ShapeError if the other extents differ.
  DTensor extended(const Layer& layer, const std::string& name, const DTensor& value);

 private:
  std::map<const Layer*, int64_t> steps_;
  std::map<std::pair<const Layer*, std::string>, DTensor> values_;
};

}  // namespace tessera
