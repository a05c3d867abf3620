#pragma once

#include <string>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::app {

/// An empty temporary folder, removed with its contents on destruction.
class TemporaryDirectory {
 public:
  /// Throws FileError.
  TemporaryDirectory();
  /// Creates one folder for all processes of the mesh, on a disk that they share. Collective.
  explicit TemporaryDirectory(const Mesh& mesh);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_maker_ = true;
};

}  // namespace tessera::app
