#pragma once

#include <string>
#include <vector>

#include "apps/gpt/gpt_model.hpp"

namespace tessera::gpt {

/// The contents of a trained model's folder, except for the weights.
struct SavedModel {
  ModelSize size;
  std::vector<std::string> vocabulary;
  std::string dtype = "float32";  ///< the dtype policy that it was trained with
};

/// Writes a model into a folder: gpt.json, vocabulary.txt and weights.safetensors. Collective.
void save_model_folder(const ModelHandle& model, const SavedModel& saved, const std::string& folder,
                       bool first_process);
/// Reads gpt.json and vocabulary.txt. Throws FileError, ConfigError.
SavedModel read_model_folder(const std::string& folder);
/// Loads the weights of a folder into a built model. Collective.
void load_weights_of(const ModelHandle& model, const std::string& folder);

}  // namespace tessera::gpt
