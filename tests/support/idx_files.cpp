#include "tests/support/idx_files.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

namespace {

std::string images(int first, int count) {
  std::string data;
  for (int i = first; i < first + count; ++i) {
    for (int p = 0; p < 28 * 28; ++p) data += static_cast<char>((i + p) % 256);
  }
  return idx_bytes({static_cast<uint32_t>(count), 28, 28}, data);
}

std::string labels(int first, int count) {
  std::string data;
  for (int i = first; i < first + count; ++i) data += static_cast<char>(3 * i % 10);
  return idx_bytes({static_cast<uint32_t>(count)}, data);
}

void set(const std::string& name, const char* value) {
  if (value == nullptr) {
    ::unsetenv(name.c_str());
  } else {
    ::setenv(name.c_str(), value, 1);
  }
}

}  // namespace

std::string idx_bytes(const std::vector<uint32_t>& extents, const std::string& data) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift);
  }
  return bytes + data;
}

void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  const gzFile file = gzopen(path.c_str(), "wb1");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

void write_mnist(const std::filesystem::path& folder, int train, int test, bool gzip) {
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& bytes) {
    if (gzip) {
      write_gzip(folder / (name + ".gz"), bytes);
    } else {
      write_file(folder / name, bytes);
    }
  };
  write("train-images-idx3-ubyte", images(0, train));
  write("train-labels-idx1-ubyte", labels(0, train));
  write("t10k-images-idx3-ubyte", images(100, test));
  write("t10k-labels-idx1-ubyte", labels(100, test));
}

std::string real_data_folder() {
  const char* variable = std::getenv("TESSERA_DATA");
  const std::vector<std::string> folders{variable == nullptr ? "" : variable,
                                         TESSERA_TEST_DIR "/../../shared/data"};
  for (const std::string& folder : folders) {
    if (std::filesystem::exists(folder + "/mnist/train-images-idx3-ubyte.gz")) return folder;
  }
  return "";
}

std::string digits_folder() {
  const std::string folder = real_data_folder();
  return folder.empty() ? golden_path("excerpts").string() : folder;
}

size_t steps_of_digits(size_t steps) {
  return real_data_folder().empty() ? std::min<size_t>(steps, 10) : steps;
}

EnvironmentScope::EnvironmentScope(const std::string& name, const char* value)
    : name_(name), was_set_(std::getenv(name.c_str()) != nullptr) {
  if (was_set_) previous_ = std::getenv(name.c_str());
  set(name_, value);
}

EnvironmentScope::~EnvironmentScope() { set(name_, was_set_ ? previous_.c_str() : nullptr); }

}  // namespace tessera::test
