#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Writes a model's weights, whole, to one safetensors file, named by their paths. Collective; the
/// first process of the mesh writes. Throws FileError on every process, leaving a former file as it
/// was; StateError for a model that is not built.
void save_weights(const Layer& model, const std::string& path);

/// Reads weights that save_weights wrote, or any safetensors file that holds the same names, shapes
/// and dtypes, straight into their layouts; nothing is drawn, and nothing is changed unless all of
/// them fit. Throws FileError naming the file and the tensor.
void load_weights(Layer& model, const std::string& path);

}  // namespace tessera
