#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/layers/pretrained/pretrained_adapters.hpp>

namespace tessera {

/// The options of load_pretrained().
struct LoadPretrainedOptions {
  /// Layouts of weights and batches (default: weights are replicated over the default mesh).
  LayoutMap layouts = {};
  std::string dtype = "";  ///< dtype policy, to which weights are cast (default: the global policy)
  /// Whether the model has a second input, document ids, integers (batch, T): rows of
  /// pack_documents(). Such a model is for training; generate() continues those without.
  bool documents = false;
};

/// Loads a language model from a folder of Hugging Face's programs: config.json, and
/// model.safetensors or model.safetensors.index.json with the files that it lists. The model types
/// are bert, gpt2, llama, mistral, qwen2, qwen3 and gemma. A path that ends in .gguf is a file of
/// llama.cpp's programs; its architectures are gpt2, llama (also of Mistral's models), qwen2, qwen3
/// and gemma, its types F32, F16, BF16, Q8_0, Q4_0 and Q4_1, which become the dtype of the weights.
/// The model is Functional; it maps token ids (batch, T) to logits (batch, T, vocabulary):
///
///     ModelHandle model = load_pretrained("SmolLM2-135M/", {.dtype = "bfloat16"});
///
/// A model of type bert (MiniLM is one) maps token ids, their mask (0: padding) and their types,
/// all integers (batch, T), to the last hidden state (batch, T, features), and if the file has a
/// pooler also to its output (batch, features).
///
/// Each process reads only its own blocks; no initializer runs. With layouts, the model is compiled
/// for them, without a loss: predict() runs on their mesh. Collective. Throws ConfigError for a
/// configuration that is unknown or not implemented, FileError naming the file and the tensor,
/// LayoutError for a rule that matches no weight.
ModelHandle load_pretrained(const std::string& path, const LoadPretrainedOptions& options = {});

/// Returns the ids of the tokens that end a text, of "eos_token_id" in a folder's
/// generation_config.json, or else in its config.json: stop_tokens of generate(). Empty if neither
/// has them. Throws FileError, ConfigError.
std::vector<int64_t> pretrained_stop_tokens(const std::string& folder);

/// The options of save_pretrained().
struct SavePretrainedOptions {
  /// Folder or GGUF file that the model was loaded from; its configuration is written to
  /// config.json (default: the folder has that file).
  std::string like = "";
};

/// Writes the weights of a model of load_pretrained() to a folder, as model.safetensors with
/// Hugging Face's names and the weights' dtypes. A previous model.safetensors is replaced
/// atomically. Collective; the first process needs memory for all weights. Throws ConfigError if
/// the model is not what config.json describes, FileError.
///
///     save_pretrained(model, "mine/", {.like = "SmolLM2-135M/"});
void save_pretrained(const ModelHandle& model, const std::string& folder,
                     const SavePretrainedOptions& options = {});

}  // namespace tessera
