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
  std::string version = "";       ///< the folder of the files, if it was read
};

/// Writes a model as a new version in a folder: gpt.json, vocabulary.txt and weights.safetensors,
/// with their checksums. The version appears complete or not at all. Collective. Throws FileError.
void save_model_folder(const ModelHandle& model, const SavedModel& saved,
                       const std::string& folder);
/// Reads gpt.json and vocabulary.txt of the newest version in a folder, of a version's own folder,
/// or of a folder that earlier releases wrote, which has no versions; verifies all files of a
/// version. Throws FileError, ConfigError.
SavedModel read_model_folder(const std::string& folder);
/// Loads the weights of a saved model that was read into a built model. Collective. Throws
/// FileError, also if the processes have read different versions.
void load_weights_of(const ModelHandle& model, const SavedModel& saved);

}  // namespace tessera::gpt
