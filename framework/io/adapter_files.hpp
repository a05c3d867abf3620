#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The module of a PyTorch model that a layer is, in files of adapters.
struct AdapterModule {
  std::string name;   ///< "model.layers.0.self_attn.q_proj"
  int64_t part = 0;   ///< which of `parts` equal ranges of the module's outputs the layer has
  int64_t parts = 1;  ///< GPT-2: query, key and value are one module of 3 parts
};

/// The options of save_adapters() and load_adapters().
struct AdapterFileOptions {
  /// Returns the module of a layer by its path (default: the path with "." in place of "/").
  std::function<AdapterModule(const std::string& path)> module_of = {};
  std::string base_model = "";  ///< base_model_name_or_path; written only
};

/// Writes the adapters of Model::enable_lora() alone to a folder, as `peft` does:
/// adapter_config.json and adapter_model.safetensors with float32 tensors of the full values. An
/// adapter with Keras' shapes for a kernel of several heads is written as the equal one with a rank
/// for each head. Previous files are replaced atomically. Collective. Throws StateError if no layer
/// has an adapter, ConfigError for one whose kernel is no matrix of inputs and outputs or whose
/// module has parts, FileError.
void save_adapters(const Layer& model, const std::string& folder,
                   const AdapterFileOptions& options = {});

/// Reads adapters of `peft`, of the kind LoRA, from a folder. A layer without an adapter gets one
/// (Layer::enable_lora() with `as_matrix`), and then all other weights are frozen, as by
/// Model::enable_lora(): call compile() after it. One with an adapter of the same rank, alpha and
/// shapes takes the values. Each process keeps its own shards. Nothing is changed unless all fit.
/// Collective. Throws FileError naming the tensor, ConfigError naming the key of
/// adapter_config.json that is not implemented, StateError for a model that is not built.
void load_adapters(Layer& model, const std::string& folder, const AdapterFileOptions& options = {});

}  // namespace tessera
