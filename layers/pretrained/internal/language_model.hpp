#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/layers/transformer/transformer_block.hpp>

namespace tessera::detail {

/// A language model of a Hugging Face config.json, in options of the library's layers.
struct LanguageModelConfig {
  std::string model_type;
  int64_t vocabulary = 0, features = 0, blocks = 0;
  int64_t positions = 0;    ///< learned positions; 0: none
  int64_t token_types = 0;  ///< number of types of tokens (BERT)
  bool has_pooler = false;  ///< whether BERT has the second output; the file of the weights says it
  bool tie_weights = true;
  double embedding_scale = 1;
  double scale_offset = 0;  ///< added to the scales of norms in the file (GGUF's of Gemma: -1)
  std::optional<double> logit_soft_cap;  ///< c of logits c · tanh(logits / c)
  TransformerBlockOptions block;
  /// Whether each block has the window of `block` (default: all have it).
  std::vector<bool> is_local;
  std::optional<ops::RotaryOptions> local_rotary;  ///< positions of blocks with a window, if other
};

/// Reads an untrusted config.json. Throws ConfigError naming the key.
LanguageModelConfig language_model_config(const Json& json, const std::string& where);

/// Returns the prefix of names of an architecture's tensors in Hugging Face's files.
std::string name_prefix(const LanguageModelConfig& config);

/// Makes the model that a configuration describes, with the paths of weight_source(); with
/// `has_documents`, document ids are its second input. Throws ConfigError.
ModelHandle make_language_model(const LanguageModelConfig& config, const std::string& dtype,
                                bool has_documents = false);

/// The place of a weight in a Hugging Face file.
struct WeightSource {
  std::string name;        ///< without the prefix that some files leave out, "model."
  bool transpose = false;  ///< whether it is in PyTorch's layout
  int64_t part = 0;        ///< which of `parts` equal ranges of the last axis
  int64_t parts = 1;
  double offset = 0;  ///< what is added to the file's elements
};

/// Returns where the weight with this path is. Throws ConfigError for the path of another model.
WeightSource weight_source(const LanguageModelConfig& config, const std::string& path);

}  // namespace tessera::detail
