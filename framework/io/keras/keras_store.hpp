#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// A dataset and its file; or several, which Keras 1 wrote for one weight.
struct KerasData {
  const Hdf5File* file;
  const Hdf5Dataset* dataset;
  /// Datasets whose elements follow along the last axis: a matrix for each gate.
  std::vector<const Hdf5Dataset*> more = {};
  /// An axis of extent 1 of the dataset that the weight lacks.
  std::optional<size_t> unit_axis = std::nullopt;
};

/// Keras' weights in one HDF5 file, of the current or an earlier format, or in several files listed
/// in a ".json". Every failure is a FileError naming the file.
class KerasStore {
 public:
  /// Opens "x.weights.h5", "x.h5" or "x.weights.json".
  explicit KerasStore(const std::string& path);
  /// Opens the weights file in a model's archive.
  KerasStore(const ZipArchive& archive, const ZipMember& member);

  const std::string& path() const { return path_; }
  /// Returns whether it is one file of Keras 2's format, see legacy_file.hpp.
  bool is_legacy() const;
  /// Returns the file of Keras 2's format.
  const Hdf5File& legacy_file() const { return *files_.front(); }
  /// Returns whether its groups are named as Keras of TensorFlow 2.13 names them.
  bool is_of_keras_2_13() const;
  /// Returns the datasets under "GROUP/vars" in their order; `group` is named as by keras_tree(),
  /// or as by earlier versions of Keras. In a legacy file only the optimizer's are found.
  std::vector<KerasData> variables(const std::string& group) const;
  /// Returns the groups with variables as named in the files, with "/" for Windows' "\".
  std::vector<std::string> groups() const;
  /// Returns the name of the object that a group belongs to; empty if the file does not store it.
  std::string name_of(const std::string& group) const;
  uint64_t bytes_read() const;
  /// Verifies the data before they are used: the CRC-32 of an archive's weights, which is read a
  /// second time for it, and the checksums of files that Tessera wrote. Each process of the mesh
  /// reads one part. Collective. Throws FileError on every process.
  void verify(const Mesh& mesh) const;

 private:
  std::string path_;
  /// The archive and its member, unless verified while it was decompressed.
  std::shared_ptr<const FileDescriptor> archive_;
  ZipMember member_;
  std::vector<std::unique_ptr<Hdf5File>> files_;
};

/// Opens the weights file in a model's archive. Throws FileError if there is none.
KerasStore archived_weights(const ZipArchive& archive);

}  // namespace tessera::detail
