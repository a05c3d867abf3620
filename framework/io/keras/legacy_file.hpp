#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The group of an HDF5 file that has a group for each layer by its name, as Keras 2 writes it and
/// Keras 3 into ".h5"; nothing in files of another form.
std::optional<std::string> legacy_weights(const Hdf5File& file);

/// The data that a group of such a file lists in its "weight_names", in their order. Throws
/// FileError for one that is not there.
std::vector<KerasData> listed_data(const Hdf5File& file, const std::string& group);

/// A whole model's configuration in such a file, with the "keras_version" that wrote it. Throws
/// FileError if it has weights alone.
Json legacy_model_config(const Hdf5File& file);

/// How the model was compiled, as Keras writes it today; null if the file does not say. Throws
/// ConfigError naming the place in `where`.
Json legacy_compile_config(const Hdf5File& file, const std::string& where);

/// The data that a model's weights take of such a file: layer by layer in their order or, by_name,
/// of the layers with the same names. What skip_mismatch leaves out is named in `skipped`. Throws
/// FileError naming the layer.
std::vector<KerasMatch> match_legacy_weights(const Layer& model, const Hdf5File& file,
                                             const LoadWeightsOptions& options,
                                             std::vector<std::string>& skipped);

}  // namespace tessera::detail
