#pragma once

#include <string>

namespace tessera::app {

/// An empty folder for the time of a run, removed with everything in it.
class TemporaryFolder {
 public:
  /// Throws FileError.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tessera::app
