#pragma once

#include <string>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/pretrained/pretrained_adapters.hpp>

namespace tessera {

/// The options of load_pretrained().
struct LoadPretrainedOptions {
  /// Layouts of weights and batches (default: weights are replicated over the default mesh).
  LayoutMap layouts = {};
  std::string dtype = "";  ///< dtype policy, to which weights are cast (default: the global policy)
};

/// Loads a language model from a folder of Hugging Face's programs: config.json, and
/// model.safetensors or model.safetensors.index.json with the files that it lists. The model types
/// are gpt2, llama, mistral, qwen2, qwen3 and gemma. The model is Functional; it maps token ids
/// (batch, T) to logits (batch, T, vocabulary):
///
///     ModelHandle model = load_pretrained("SmolLM2-135M/", {.dtype = "bfloat16"});
///
/// Each process reads only its own blocks; no initializer runs. Collective. Throws ConfigError for
/// a configuration that is unknown or not implemented, FileError naming the file and the tensor.
ModelHandle load_pretrained(const std::string& folder, const LoadPretrainedOptions& options = {});

/// Writes the weights of a model of load_pretrained() to a folder that has the config.json of its
/// kind, as model.safetensors with Hugging Face's names and the weights' dtypes. A previous
/// model.safetensors is replaced atomically. Collective; the first process needs memory for all
/// weights. Throws ConfigError if the model is not what config.json describes, FileError.
void save_pretrained(const ModelHandle& model, const std::string& folder);

}  // namespace tessera
