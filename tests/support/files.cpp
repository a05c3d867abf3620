#include "tests/support/files.hpp"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace tessera::test {

namespace fs = std::filesystem;

namespace {

/// Returns the folder in an environment variable, for tests that run elsewhere than they were
/// built.
fs::path folder_of(const char* variable, const char* otherwise) {
  const char* folder = std::getenv(variable);
  return folder ? folder : otherwise;
}

fs::path test_folder() { return folder_of("TESSERA_TEST_DIR", TESSERA_TEST_DIR); }

}  // namespace

fs::path golden_path(const std::string& name) { return test_folder() / "golden" / name; }

fs::path tree_path(const std::string& name) { return test_folder().parent_path() / name; }

fs::path app_path(const std::string& name) {
  return folder_of("TESSERA_BIN_DIR", TESSERA_BIN_DIR) / name;
}

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "tessera_test_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  // Overwrites a file before it cuts the rest off: a file that was emptied first is written to disk
  // at once by ext4 when it is closed, which takes milliseconds.
  const bool overwrites = fs::is_regular_file(path);
  std::ofstream out(path, overwrites ? std::ios::binary | std::ios::in : std::ios::binary);
  out << bytes;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
  if (overwrites) fs::resize_file(path, bytes.size());
}

}  // namespace tessera::test
