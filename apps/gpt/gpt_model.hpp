#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::gpt {

/// A transformer that foretells the next word. The defaults are those of Keras' "Text generation
/// with a miniature GPT".
struct ModelSize {
  int64_t blocks = 1;
  int64_t heads = 2;
  int64_t kv_heads = 0;    ///< that heads share their keys and values in; 0: each has its own
  int64_t head_dim = 256;  ///< features of a head's query, key and value; 0: width / heads
  int64_t width = 256;     ///< features of a step
  int64_t hidden = 256;    ///< of a block's two dense layers
  int64_t length = 80;     ///< words that the model sees
  int64_t vocabulary = 20000;
  double dropout = 0.1;
  int64_t experts = 0;         ///< in place of a block's two dense layers; 0: none
  double capacity_factor = 2;  ///< slots of experts for each word of a row, in training
  double aux_loss = 0.01;      ///< factor of the loss that has experts chosen evenly
  bool pre_norm = false;  ///< normalizes before attention and dense layers, not behind the sums
  bool tied = false;      ///< logits by the words' own embeddings, without a bias
};

/// What the command line says of the model; what is absent is that of the size by its name.
struct ModelFlags {
  std::string size = "mini";
  std::optional<int64_t> blocks = {}, heads = {}, kv_heads = {}, head_dim = {}, width = {},
                         hidden = {}, experts = {}, length = {}, vocabulary = {};
  std::optional<bool> pre_norm = {}, tied = {};
  double dropout = 0.1, capacity_factor = 2, aux_loss = 0.01;
};

/// The options that say how large the model is.
void add_model_options(app::AppOptions& options, ModelFlags& flags);
/// For after parse(). Throws ConfigError for sizes that do not go together.
ModelSize model_size(const ModelFlags& flags);

Json to_json(const ModelSize& size);
/// Throws ConfigError naming `source` and the key.
ModelSize model_size_from_json(const Json& json, const std::string& source);

/// Token ids, int64 (batch, T), T at most `length` -> logits (batch, T, vocabulary).
///
/// Paths, for layouts: tokens/embeddings, positions/embeddings, then in block_1, block_2, …
/// attention/{query,key,value,attention_output}/{kernel,bias}, norm_1, up and down (dense) or
/// experts/{router,expert_1,expert_2}/{kernel,bias}, norm_2; with `pre_norm` norm at the end;
/// logits/{kernel,bias}, which a `tied` model has not.
Functional gpt_model(const ModelSize& size);

}  // namespace tessera::gpt
