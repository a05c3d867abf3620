#pragma once

#include <string>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::app {

/// An empty folder for the time of a run, removed with everything in it.
class TemporaryFolder {
 public:
  /// Throws FileError.
  TemporaryFolder();
  /// The same one for all processes of the mesh, on a disk that they share. Collective.
  explicit TemporaryFolder(const Mesh& mesh);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_maker_ = true;
};

}  // namespace tessera::app
