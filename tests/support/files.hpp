#pragma once

#include <filesystem>
#include <string>

namespace tessera::test {

/// Returns the path of `name` in tests/golden.
std::filesystem::path golden_path(const std::string& name);

/// Returns the path of `name` in the tree, such as "apps/mnist"; $TESSERA_TEST_DIR overrides the
/// tree.
std::filesystem::path tree_path(const std::string& name);

/// Returns the path of the application `name`, e.g. "mnist", in this build or in $TESSERA_BIN_DIR.
std::filesystem::path app_path(const std::string& name);

/// A new temporary folder, removed with its content at the end of its scope.
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

/// Returns the bytes of a file. Throws std::runtime_error if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes `bytes` as the entire content of a file. Throws std::runtime_error on failure.
void write_file(const std::filesystem::path& path, const std::string& bytes);

}  // namespace tessera::test
