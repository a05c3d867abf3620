#pragma once

#include <optional>
#include <string>

#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Writes a model's weights to a file (keras.Model.save_weights). The file name's extension selects
/// the format: Keras' ".weights.h5", or ".weights.json" for several files, both with the
/// optimizer's variables and each process writing its own rows; or safetensors with complete
/// tensors named by their paths. Both formats get a checksum of the content. Collective; the first
/// process of the mesh creates and commits the file. Throws FileError on every process, leaving a
/// previous file unchanged; ConfigError for ".keras", which Model::save() writes; StateError for a
/// model that is not built.
void save_weights(const Layer& model, const std::string& path,
                  const SaveWeightsOptions& options = {});

/// Reads weights that save_weights() or Keras wrote, those of a model in a ".keras" archive, a
/// folder or an HDF5 file of any name, or any safetensors file or index of several
/// ("model.safetensors.index.json"), straight into their layouts: each process reads only its own
/// blocks, after the file's checksum was verified, if it has one: of Keras' files by all together,
/// of a safetensors file by the first. Weights of other programs, with names, layouts and dtypes of
/// their own, are read with rename, transpose and cast, see LoadWeightsOptions:
///
///     load_weights(model.model(), "model.safetensors",
///                  {.rename = {{"^fc\\.weight$", "dense/kernel"}, {"^fc\\.bias$", "dense/bias"}},
///                   .transpose = {"kernel$"},
///                   .cast = true});
///
/// No initializer runs, and nothing is changed unless all of them fit; a safetensors file may have
/// more tensors. If the file has the variables of an optimizer of the same class, the model's
/// optimizer takes them, as in Keras. Collective. Throws FileError naming the file and the tensors;
/// ConfigError for an invalid expression or one that matches nothing.
void load_weights(Layer& model, const std::string& path, const LoadWeightsOptions& options = {});

namespace detail {

/// Returns whether a path ends in one of the extensions of weights: ".weights.h5", ".weights.json"
/// or ".safetensors".
bool has_weights_extension(const std::string& path);

/// Returns Keras' maximum GiB per file for a ".weights.json"; nothing for other paths.
std::optional<double> default_shard_size(const std::string& path);

}  // namespace detail
}  // namespace tessera
