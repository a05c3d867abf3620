#include "tests/support/files.hpp"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace tessera::test {

namespace fs = std::filesystem;

fs::path golden_path(const std::string& name) {
  // The test of a copy of the tree names the copy's.
  const char* folder = std::getenv("TESSERA_TEST_DIR");
  return fs::path(folder ? folder : TESSERA_TEST_DIR) / "golden" / name;
}

fs::path app_path(const std::string& name) { return fs::path(TESSERA_BIN_DIR) / name; }

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
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace tessera::test
