#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// The file of a version that lists the others.
inline constexpr const char* version_manifest = "export.json";

/// Returns the numbers of the versions in `root`, ascending: folders whose name is a positive
/// integer, such as "000001". Empty if `root` does not exist. Throws FileError if it cannot be
/// read.
std::vector<int64_t> list_versions(const std::string& root);

/// Returns the path of a version in `root`, spelled as it exists there; "root/000001" for a new
/// one.
std::string version_path(const std::string& root, int64_t version);

/// A version being written, in a temporary folder beside the others (new_temporary_name()). Removed
/// by the destructor unless committed.
class NewVersion {
 public:
  /// Creates `root` if needed, and removes versions that killed processes left unfinished:
  /// temporary folders that are is_abandoned() and contain only files of a version. Throws
  /// FileError.
  explicit NewVersion(const std::string& root);
  ~NewVersion();
  NewVersion(const NewVersion&) = delete;
  NewVersion& operator=(const NewVersion&) = delete;

  /// Returns the path to write a file of this name to. Throws ConfigError for a duplicate name, the
  /// manifest's, or one with anything but letters, digits, '_', '-' and '.'.
  std::string file(const std::string& name);

  /// Syncs all files and renames the folder atomically to the next version number: one more than
  /// the highest number that an entry of `root` is named after, below 10^18. `manifest` is an
  /// object; sizes and checksums of the files and of itself are added to it. Returns the number.
  /// Throws FileError, leaving previous versions unchanged.
  int64_t commit(Json manifest);

 private:
  /// Creates the folder and locks it. Returns false if the name is taken.
  bool make();
  /// Renames the folder to the next number.
  int64_t take_number();

  std::string root_;
  std::string folder_;
  FileDescriptor lock_;
  std::vector<std::string> names_;
};

/// The manifest of a version without what commit() added, and the names of its files.
struct VersionManifest {
  Json manifest;
  std::vector<std::string> files;
};

/// Reads the manifest and verifies size and checksum of every file that it names. Throws FileError
/// naming the file.
VersionManifest read_version(const std::string& folder);

}  // namespace tessera::detail
