#pragma once

#include <string>

#include <tessera/framework/model/model.hpp>

namespace tessera {

/// Writes the adapters of a model of load_pretrained() as save_adapters() does, under the names of
/// Hugging Face's modules; `base` is the folder of its config.json, which the file names as the
/// base model. `peft` applies them to the same base:
///
///     model.enable_lora(".*/attention/(query|value)", 8, {.as_matrix = true});
///     model.fit(data, options);
///     save_pretrained_adapters(model, "SmolLM2-135M/", "adapter/");
///
/// Collective. Throws like save_adapters(), and ConfigError if the model is not what config.json
/// describes.
void save_pretrained_adapters(const ModelHandle& model, const std::string& base,
                              const std::string& folder);

/// Reads adapters of `peft` into a model of load_pretrained(), as load_adapters() does. Collective.
/// Throws like load_adapters(), and ConfigError if the model is not what config.json in `base`
/// describes.
void load_pretrained_adapters(const ModelHandle& model, const std::string& base,
                              const std::string& folder);

}  // namespace tessera
