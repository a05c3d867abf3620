#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

/// Returns an IDX file of bytes with these extents; `data` follows unchanged, whatever its size.
std::string idx_bytes(const std::vector<uint32_t>& extents, const std::string& data);

/// Writes a file compressed by gzip.
void write_gzip(const std::filesystem::path& path, const std::string& bytes);

/// Writes images and labels of "train" and "test" in the format of MNIST: byte p of image i is (i +
/// p) modulo 256, its label (3 i) modulo 10; test images count from 100.
void write_mnist(const std::filesystem::path& folder, int train, int test, bool gzip = false);

/// Returns the data folder with the original MNIST files: $TESSERA_DATA, else ../shared/data beside
/// the sources. Empty if this machine has none.
std::string real_data_folder();

/// Returns a data folder with original MNIST images: real_data_folder() or, if there is none, the
/// excerpt of the first images that tests/golden/make_excerpts.py writes.
std::string digits_folder();

/// Returns how many of a trace's first `steps`, of 128 images each, digits_folder() has images for.
size_t steps_of_digits(size_t steps);

/// Sets an environment variable for one scope, or removes it if `value` is null.
class EnvironmentScope {
 public:
  EnvironmentScope(const std::string& name, const char* value);
  ~EnvironmentScope();
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  std::string name_;
  std::string previous_;
  bool was_set_;
};

/// Hides all folders in which data files could be found.
struct NoData {
  TempFolder folder;
  EnvironmentScope data{"TESSERA_DATA", nullptr};
  EnvironmentScope cache{"XDG_CACHE_HOME", (folder / "none").c_str()};
  EnvironmentScope offline{"TESSERA_OFFLINE", "1"};
};

}  // namespace tessera::test
