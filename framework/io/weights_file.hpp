#pragma once

#include <string>

#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Writes a model's weights to a file (keras.Model.save_weights). The file name's extension selects
/// the format: Keras' ".weights.h5", or ".weights.json" for several files, both with the
/// optimizer's variables and each process writing its own rows; or safetensors with complete
/// tensors named by their paths. Collective; the first process of the mesh creates and commits the
/// file. Throws FileError on every process, leaving a previous file unchanged; StateError for a
/// model that is not built.
void save_weights(const Layer& model, const std::string& path,
                  const SaveWeightsOptions& options = {});

/// Reads weights that save_weights() or Keras wrote, or any safetensors file with the same names,
/// shapes and dtypes, straight into their layouts: each process reads only its own blocks. No
/// initializer runs, and nothing is changed unless all of them fit. If the file has the variables
/// of an optimizer of the same class, the model's optimizer takes them, as in Keras. Collective.
/// Throws FileError naming the file and the tensor.
void load_weights(Layer& model, const std::string& path, const LoadWeightsOptions& options = {});

}  // namespace tessera
