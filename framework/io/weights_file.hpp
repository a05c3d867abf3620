#pragma once

#include <string>

#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Writes a model's weights to a file whose end says of which format it is
/// (keras.Model.save_weights): Keras' ".weights.h5", and ".weights.json" for several files, both
/// with the variables of the optimizer, each process its own rows; or safetensors, whole, named by
/// their paths. Collective; the first process of the mesh makes and commits the file. Throws
/// FileError on every process, leaving a former file as it was; StateError for a model that is not
/// built.
void save_weights(const Layer& model, const std::string& path,
                  const SaveWeightsOptions& options = {});

/// Reads weights that save_weights() or Keras wrote, or any safetensors file that holds the same
/// names, shapes and dtypes, straight into their layouts: each process reads its own part. Nothing
/// is drawn, and nothing is changed unless all of them fit. Of an optimizer in the file the model's
/// takes its variables if it is of the same kind, as Keras' does. Collective. Throws FileError
/// naming the file and the tensor.
void load_weights(Layer& model, const std::string& path, const LoadWeightsOptions& options = {});

}  // namespace tessera
