#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_output.hpp>

namespace tessera::detail {

/// Writes an output as several files of at most `max_bytes` bytes of data each, and
/// "x.weights.json" with the files of each group, as Keras does: "x_00000.weights.h5" and so on.
/// Files that a previous ".json" names are kept until the new one is in place, and then removed.
/// Collective. Throws FileError for a larger tensor.
void write_shards(const Mesh& mesh, const KerasOutput& output, const std::string& path,
                  double max_bytes);

/// Writes an output as one file atomically. Collective.
void write_one_file(const Mesh& mesh, KerasOutput output, const std::string& path);

/// Returns the files beside a ".weights.json" that it names. Throws ConfigError for an invalid one.
std::vector<std::string> files_in_weight_map(const std::string& path);

}  // namespace tessera::detail
