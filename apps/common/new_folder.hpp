#pragma once

#include <string>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::app {

/// A folder that is written under another name beside its own, and renamed once it is complete.
/// Removed by the destructor unless committed.
class NewFolder {
 public:
  /// Collective. Throws ConfigError naming `flag` if there is a file, or a folder with something in
  /// it, at `path`; FileError if it cannot be made.
  NewFolder(const Mesh& mesh, const std::string& flag, const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Returns the folder to write to, on every process.
  const std::string& path() const { return temporary_; }
  /// Renames the folder. Collective. Throws FileError.
  void commit();

 private:
  Mesh mesh_;
  std::string path_, temporary_;
  bool is_complete_ = false;
};

}  // namespace tessera::app
