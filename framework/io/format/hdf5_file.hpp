#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/io/format/checkpoint_grid.hpp>
#include <tessera/framework/io/format/hdf5_program.hpp>

namespace tessera::detail {

/// A group of an HDF5 file.
struct Hdf5Group {
  std::string path;                  ///< "/layers/dense/vars"; empty for the file itself
  Json attributes = Json::object();  ///< texts, numbers and lists of either; null for other types
};

/// A dataset of an HDF5 file.
struct Hdf5Dataset {
  std::string path;   ///< "/layers/dense/vars/0"
  std::string dtype;  ///< safetensors dtype, "F32"; empty if no tensor can have it
  Shape shape;
  Json attributes = Json::object();
  /// Offset of its contiguous bytes in the file; absent if only the HDF5 library can read them, for
  /// example compressed ones.
  std::optional<uint64_t> offset = std::nullopt;
};

/// Reads untrusted HDF5 files in parts. The helper program tessera-hdf5 lists their content;
/// contiguous data are read directly, without it. Every failure is a FileError naming the file.
/// Thread-safe for reads.
class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path);
  /// Opens a part of an open file, such as an archive's member; `path` is for errors.
  Hdf5File(std::shared_ptr<const FileDescriptor> file, const Hdf5Part& part, std::string path);
  ~Hdf5File();

  const std::string& path() const { return path_; }
  const std::vector<Hdf5Group>& groups() const { return groups_; }
  const std::vector<Hdf5Dataset>& datasets() const { return datasets_; }
  /// Returns the group or dataset of that path, or nullptr.
  const Hdf5Group* find_group(std::string_view path) const;
  const Hdf5Dataset* find(std::string_view path) const;

  /// Fills `out`, row-major, with a rectangle of a dataset. Reads only these bytes if the dataset
  /// is contiguous.
  void read(const Hdf5Dataset& dataset, const Rectangle& area, std::span<std::byte> out) const;
  /// Passes the chunks [begin, end) of a dataset's bytes, row-major, to `take`, one at a time; each
  /// has `chunk_bytes` bytes, the dataset's last one the remainder.
  void read_chunks(const Hdf5Dataset& dataset, uint64_t chunk_bytes, uint64_t begin, uint64_t end,
                   const std::function<void(std::span<const std::byte>)>& take) const;
  /// Returns the bytes that read() has read of datasets so far.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  void read_listing(const Json& listing);
  void read_bytes(uint64_t offset, std::span<std::byte> out) const;
  void read_by_program(const Hdf5Dataset& dataset, const Rectangle& area,
                       std::span<std::byte> out) const;

  std::string path_;
  std::shared_ptr<const FileDescriptor> file_;
  Hdf5Part part_;
  std::vector<Hdf5Group> groups_;
  std::vector<Hdf5Dataset> datasets_;
  std::map<std::string, size_t, std::less<>> group_indices_, dataset_indices_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Hdf5Program> program_;
  mutable std::atomic<uint64_t> bytes_read_ = 0;
};

/// Returns the bytes of a dataset. Throws FileError if they overflow; `path` is the file's.
uint64_t bytes_of(const Hdf5Dataset& dataset, const std::string& path);

/// Lays out an HDF5 file with room for these datasets in an open file from `base` on, and sets the
/// datasets' offsets. Parents come before their children. Returns the file's length; the caller
/// writes the data and sets the length. Throws FileError.
uint64_t lay_out_hdf5(const FileDescriptor& file, uint64_t base, const std::string& path,
                      const std::vector<Hdf5Group>& groups, std::vector<Hdf5Dataset>& datasets);

}  // namespace tessera::detail
