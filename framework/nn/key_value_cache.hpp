#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Keys and values of the steps that a model has seen, for sequences that grow: layers of attention
/// with use_causal_mask add those of the new steps, and the model is called on these alone.
///
///     const auto cache = std::make_shared<KeyValueCache>();
///     DTensor logits = model(prompt, {.cache = cache});  // of all steps so far
///     logits = model(next, {.cache = cache});            // of one more, (batch, 1, …)
///
/// The results are those that a call on all steps gives for the new ones, of models in which each
/// other layer takes a step by itself, as Dense, LayerNormalization and Embedding do, or asks
/// first_step(). Each layer is called once in each call of the model, on the same rows. Blocks stay
/// where the layers' keys and values lie.
class KeyValueCache {
 public:
  /// The number of the first of some steps that a layer is called on, which count as seen then: for
  /// layers that know places, such as embeddings of positions.
  int64_t first_step(const Layer& layer, int64_t steps);
  /// What a layer gave under this name before, and behind it along axis 1 this. Throws ShapeError
  /// if they differ elsewhere.
  DTensor extended(const Layer& layer, const std::string& name, const DTensor& value);

 private:
  std::map<const Layer*, int64_t> steps_;
  std::map<std::pair<const Layer*, std::string>, DTensor> values_;
};

}  // namespace tessera
