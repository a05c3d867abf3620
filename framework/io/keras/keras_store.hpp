#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>

namespace tessera::detail {

/// A dataset and the file that it is in.
struct KerasData {
  const Hdf5File* file;
  const Hdf5Dataset* dataset;
};

/// Keras' weights in one HDF5 file, of today's form or an earlier one, or in several that a ".json"
/// names. Every failure is a FileError naming the file.
class KerasStore {
 public:
  /// "x.weights.h5", "x.h5" or "x.weights.json".
  explicit KerasStore(const std::string& path);
  /// A model's file of weights in its archive.
  KerasStore(const ZipArchive& archive, const ZipMember& member);

  const std::string& path() const { return path_; }
  /// Whether it is one file of Keras 2's form, see legacy_file.hpp.
  bool is_legacy() const;
  /// The one file of that form.
  const Hdf5File& legacy_file() const { return *files_.front(); }
  /// What lies under "GROUP/vars", in its order; `group` as keras_tree() has it, or as earlier
  /// versions of Keras called it. Of a legacy file the optimizer's alone.
  std::vector<KerasData> variables(const std::string& group) const;
  /// Groups with variables, as the files have them.
  std::vector<std::string> groups() const;
  /// The name of the object that a group is of; empty if it does not say.
  std::string name_of(const std::string& group) const;
  uint64_t bytes_read() const;

 private:
  std::string path_;
  std::vector<std::unique_ptr<Hdf5File>> files_;
};

}  // namespace tessera::detail
