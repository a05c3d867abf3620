#pragma once

#include <memory>
#include <string>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/nn/text_layer.hpp>

namespace tessera {

/// The options of load_model().
struct LoadModelOptions {
  /// Where weights and batches lie; undefined: replicated over the default mesh.
  LayoutMap layouts = {};
  /// Whether the model is compiled as it was when it was saved, with the optimizer's variables, so
  /// that training goes on.
  bool compile = true;
};

/// The model in a file that Model::save() or Keras wrote (keras.saving.load_model): a ".keras"
/// archive, a folder of the same files, or a whole model of Keras 2 in an ".h5" or ".hdf5" file. Of
/// the weights each process reads its own part, straight into its shards, and nothing is drawn.
/// Only layers that layer_from_config() knows are made; nothing named in the file is opened or run.
/// Collective. Throws FileError naming the file and the place, ConfigError naming the node or layer
/// that is not known here, LayoutError for a layout map that does not fit.
ModelHandle load_model(const std::string& path, const LoadModelOptions& options = {});

/// The TextVectorization or StringLookup in a model that Keras wrote, with its vocabulary, which
/// lies among the assets of the ".keras" archive or folder; by its name if the model has several.
/// Here it stands before a model, for texts are no tensors:
///
///     const LookupHandle vectorize(load_text_layer("reviews.keras"));
///     model.predict(vectorize.dataset({"a fine film"}));
///
/// Throws FileError naming the file if there is none, several, or none of this name, or it was
/// saved without a vocabulary; ConfigError for a configuration that is not known here.
std::shared_ptr<TextLayer> load_text_layer(const std::string& path, const std::string& name = "");

}  // namespace tessera
