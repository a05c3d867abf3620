#pragma once

#include <memory>
#include <string>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/nn/text_layer.hpp>

namespace tessera {

/// The options of load_model().
struct LoadModelOptions {
  /// Layouts of weights and batches. Default: weights are replicated over the default mesh; batches
  /// are sharded over its dimension "batch", if there is one.
  LayoutMap layouts = {};
  /// Whether to compile the model as it was when it was saved, with the optimizer's variables, so
  /// that training can continue. Otherwise it predicts, with `layouts` if they are given.
  bool compile = true;
};

/// Loads a model that Model::save() or Keras wrote (keras.saving.load_model): a ".keras" archive, a
/// folder of the same files, or a complete model of Keras 1 or 2 in an HDF5 file, whatever its name
/// ends in. hard_sigmoid of such a model is that of its Keras, "tessera>hard_sigmoid_2". Each
/// process reads only its shards of the weights; no initializer runs. Only layers that
/// layer_from_config() knows are created; nothing that the file names is opened or run. The
/// weights' checksum is verified first, each process reading a part. Collective. Throws FileError
/// naming the file and the position in it, ConfigError naming an unknown node or layer, LayoutError
/// for a layout map that does not fit.
ModelHandle load_model(const std::string& path, const LoadModelOptions& options = {});

/// Loads the TextVectorization or StringLookup of a model that Keras wrote, with its vocabulary
/// from the assets of the ".keras" archive or folder. `name` selects one of several. It is applied
/// before the model, since texts are not tensors:
///
///     const LookupHandle vectorize(load_text_layer("reviews.keras"));
///     model.predict(vectorize.dataset({"a fine film"}));
///
/// Throws FileError naming the file if there is no such layer, if there are several and `name` is
/// empty, or if it was saved without a vocabulary; ConfigError for an unknown configuration.
std::shared_ptr<TextLayer> load_text_layer(const std::string& path, const std::string& name = "");

}  // namespace tessera
