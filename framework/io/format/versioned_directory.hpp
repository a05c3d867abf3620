#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// The file of a version that names the others.
inline constexpr const char* version_manifest = "export.json";

/// Numbers of the versions in `root`, ascending: its folders whose name is a whole number above 0,
/// such as "000001". Empty if there is no such folder. Throws FileError if it cannot be read.
std::vector<int64_t> list_versions(const std::string& root);

/// Where a version of `root` lies, written as it is found there; a new one as "root/000001".
std::string version_path(const std::string& root, int64_t version);

/// A version that is being written, in a temporary folder beside the others that is named after its
/// process (new_temporary_name()). What is not committed is removed again.
class NewVersion {
 public:
  /// Makes `root` if need be, and removes from it the versions that killed processes left
  /// unfinished: folders of such a name that is_abandoned(), with nothing but files of a version.
  /// Throws FileError.
  explicit NewVersion(const std::string& root);
  ~NewVersion();
  NewVersion(const NewVersion&) = delete;
  NewVersion& operator=(const NewVersion&) = delete;

  /// Where a file of this name is to be written. Throws ConfigError for a name of anything but
  /// letters, digits, '_', '-' and '.', or that of the manifest.
  std::string file(const std::string& name);

  /// Gives the folder, with all files on disk, its number in one step: one more than the highest
  /// that a folder, a file or a link has as its name, and below 10^18. `manifest` is an object;
  /// sizes and checksums of the files and of itself are added to it. Returns the number. Throws
  /// FileError, leaving the former versions as they were.
  int64_t commit(Json manifest);

 private:
  /// Makes the folder and locks it; false if the name is taken.
  bool make();
  /// Renames the folder to the next number.
  int64_t take_number();

  std::string root_;
  std::string folder_;
  FileDescriptor lock_;
  std::vector<std::string> names_;
};

/// The manifest of a version, with what commit() added taken out again, and the names of its files.
struct VersionManifest {
  Json manifest;
  std::vector<std::string> files;
};

/// Reads the manifest and verifies the size and the checksum of every file that it names. Throws
/// FileError naming the file.
VersionManifest read_version(const std::string& folder);

}  // namespace tessera::detail
