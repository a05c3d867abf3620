#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/format/hdf5_file.hpp>

namespace tessera::test {

using namespace detail;

/// Tensors by name, in their order.
using NamedData = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes an HDF5 file. `groups` are those with attributes; the parents of groups and of data are
/// added.
void write_hdf5(const std::string& path, const std::vector<Hdf5Group>& groups,
                const NamedData& data);

/// A model or its weights in HDF5, as Keras 1 and 2 write them.
struct LegacyFile {
  std::string version = "2.4.0";
  std::vector<std::pair<std::string, NamedData>> layers = {};  ///< weights by name, by layer
  Json config = nullptr;                                       ///< null: weights only
  Json training = nullptr;
  NamedData optimizer = {};
};
void write_legacy_file(const std::string& path, const LegacyFile& file);

/// Writes a model's archive, as Keras from 2.12 on does. `groups` are the names of groups in the
/// weights file and their variables.
void write_archive(const std::string& path, const std::string& version, const Json& config,
                   const std::vector<std::pair<std::string, std::vector<at::Tensor>>>& groups);

}  // namespace tessera::test
