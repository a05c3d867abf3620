#pragma once

#include <filesystem>
#include <string>

namespace tessera::test {

/// Path of `name` in tests/golden.
std::filesystem::path golden_path(const std::string& name);

/// Path of `name` in the tree, such as "apps/mnist"; it holds $TESSERA_TEST_DIR if that is set.
std::filesystem::path tree_path(const std::string& name);

/// Path of the application `name`, e.g. "mnist": of this build, or in $TESSERA_BIN_DIR.
std::filesystem::path app_path(const std::string& name);

/// An empty folder of its own, removed with everything in it at the end of its scope.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Bytes of a file. Throws std::runtime_error if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes `bytes` as the whole of a file. Throws std::runtime_error if it cannot.
void write_file(const std::filesystem::path& path, const std::string& bytes);

}  // namespace tessera::test
