#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_output.hpp>

namespace tessera::detail {

/// Writes an output as several files of at most so many bytes of data each and "x.weights.json",
/// which names the files of each group, as Keras does: "x_00000.weights.h5" and on. Files that a
/// former ".json" names stay as they are until the new one is in place; then they are removed.
/// Collective. Throws FileError for a tensor that is larger.
void write_shards(const Mesh& mesh, const KerasOutput& output, const std::string& path,
                  double most_bytes);

/// Writes an output as one file, in one step. Collective.
void write_one_file(const Mesh& mesh, KerasOutput output, const std::string& path);

/// The files that a ".weights.json" names, which lie beside it. Throws ConfigError for what is
/// none.
std::vector<std::string> files_in_weight_map(const std::string& path);

}  // namespace tessera::detail
