#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::gpt {

/// The sizes of a transformer that predicts the next word. The defaults are those of Keras' "Text
/// generation with a miniature GPT".
struct ModelSize {
  int64_t blocks = 1;
  int64_t heads = 2;
  int64_t kv_heads = 0;    ///< heads of keys and values (grouped-query attention); 0: `heads`
  int64_t head_dim = 256;  ///< features of a head's query, key and value; 0: width / heads
  int64_t width = 256;     ///< features of a position
  int64_t hidden = 256;    ///< units of a block's first dense layer
  int64_t length = 80;     ///< context length in words
  int64_t vocabulary = 20000;
  double dropout = 0.1;
  int64_t experts = 0;         ///< experts that replace a block's dense layers; 0: none
  double capacity_factor = 2;  ///< expert slots per word of a row, in training
  double aux_loss = 0.01;      ///< factor of the load-balancing loss
  bool pre_norm = false;  ///< whether to normalize before attention and dense layers, not after
  bool tied = false;      ///< whether logits use the token embeddings, without a bias
  bool rotary = false;    ///< whether to rotate queries and keys, without position embeddings
  bool rms_norm = false;  ///< whether to normalize by root mean squares
  bool gated = false;     ///< whether dense layers are SwiGLU, with a `gate` beside `up`
  bool biases = true;     ///< whether attention and dense layers have biases
};

/// The model options of the command line (default: those of the size named `size`).
struct ModelFlags {
  std::string size = "mini";
  std::optional<int64_t> blocks = {}, heads = {}, kv_heads = {}, head_dim = {}, width = {},
                         hidden = {}, experts = {}, length = {}, vocabulary = {};
  std::optional<bool> pre_norm = {}, tied = {}, rotary = {}, rms_norm = {}, gated = {}, biases = {};
  double dropout = 0.1, capacity_factor = 2, aux_loss = 0.01;
};

/// Adds the options that determine the model's size.
void add_model_options(app::AppOptions& options, ModelFlags& flags);
/// Resolves the flags to sizes, after parse(). Throws ConfigError for inconsistent sizes.
ModelSize model_size(const ModelFlags& flags);

Json to_json(const ModelSize& size);
/// Throws ConfigError naming `source` and the key.
ModelSize model_size_from_json(const Json& json, const std::string& source);

/// Makes the model: token ids, int64 (batch, T) with T at most `length` -> logits (batch, T,
/// vocabulary).
///
/// Paths, for layouts: tokens/embeddings, without `rotary` positions/embeddings, then in block_1,
/// block_2, … attention/{query,key,value,attention_output}/{kernel,bias}, norm_1, up and down
/// (dense), with `gated` gate, or experts/{router,expert_1,expert_2}/{kernel,bias}, norm_2; with
/// `pre_norm` norm at the end; logits/{kernel,bias}, except in a `tied` model.
Functional gpt_model(const ModelSize& size);

}  // namespace tessera::gpt
