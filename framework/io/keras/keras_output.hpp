#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Groups and datasets of Keras' weights file, and the value of each dataset.
struct KerasOutput {
  std::vector<Hdf5Group> groups;
  std::vector<Hdf5Dataset> datasets;
  std::vector<KerasValue> values;
};

/// Returns what Keras stores of a model: its weights and optionally its optimizer's variables.
KerasOutput keras_output(const Layer& model, bool with_optimizer);

/// Writes an output as an HDF5 file at offset `base` of the file `temporary`: the first process of
/// the mesh creates the groups, and every process writes its own rows; nothing is sent. `path` is
/// the file that will be replaced, for errors. Both paths are the first process's. Collective.
/// Returns the length of the HDF5 file on every process.
uint64_t write_output(const Mesh& mesh, KerasOutput& output, const std::string& path,
                      const std::string& temporary, uint64_t base);

/// Writes an output as the file `temporary`, like write_output(), and stores the checksum of its
/// content in it: each process reads one part again. Collective.
void write_checked_output(const Mesh& mesh, KerasOutput& output, const std::string& path,
                          const std::string& temporary);

}  // namespace tessera::detail
