#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Returns the group of an HDF5 file that contains a group for each layer by name, as Keras 2
/// writes it and Keras 3 into ".h5"; nothing for other files.
std::optional<std::string> legacy_weights(const Hdf5File& file);

/// Returns the data that a group of such a file lists in "weight_names", in their order. Throws
/// FileError for missing data.
std::vector<KerasData> listed_data(const Hdf5File& file, const std::string& group);

/// Returns the configuration of a complete model in such a file, with the "keras_version" that
/// wrote it. Throws FileError if the file has weights only.
Json legacy_model_config(const Hdf5File& file);

/// Returns how the model is compiled, as the file has it; null if it does not say. Throws
/// ConfigError naming the position in `where`.
Json legacy_compile_config(const Hdf5File& file, const std::string& where);

/// Matches a model's weights with such a file's data: layer by layer in their order or, with
/// by_name, by the layers' names. Adds layers left out by skip_mismatch to `skipped`. Throws
/// FileError naming the layer.
std::vector<KerasMatch> match_legacy_weights(const Layer& model, const Hdf5File& file,
                                             const LoadWeightsOptions& options,
                                             std::vector<std::string>& skipped);

}  // namespace tessera::detail
