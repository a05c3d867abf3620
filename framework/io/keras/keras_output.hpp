#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Groups and datasets of Keras' file of weights, and the value of each dataset.
struct KerasOutput {
  std::vector<Hdf5Group> groups;
  std::vector<Hdf5Dataset> datasets;
  std::vector<KerasValue> values;
};

/// What Keras keeps of a model: its weights and, if asked for, the variables of its optimizer.
KerasOutput keras_output(const Layer& model, bool with_optimizer);

/// Writes the HDF5 file of an output into an open file from `base` on: the first process of the
/// mesh makes its groups, and every process writes its own rows, of which none are sent. `path` is
/// the file's that is replaced, for errors, `temporary` where it is written; both are the first
/// process's. Collective. Returns how long the HDF5 file is, on every process.
uint64_t write_output(const Mesh& mesh, KerasOutput& output, const std::string& path,
                      const std::string& temporary, uint64_t base);

}  // namespace tessera::detail
