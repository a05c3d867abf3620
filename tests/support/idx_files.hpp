#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

/// An IDX file of bytes with these extents; `data` follows as it is, of whatever length.
std::string idx_bytes(const std::vector<uint32_t>& extents, const std::string& data);

/// Writes a file packed by gzip.
void write_gzip(const std::filesystem::path& path, const std::string& bytes);

/// Writes the images and labels of "train" and "test" in the format of MNIST: byte p of image i is
/// (i + p) modulo 256, its label (3 i) modulo 10; test images count from 100.
void write_mnist(const std::filesystem::path& folder, int train, int test, bool gzip = false);

/// Folder of the data sets with the true files of MNIST: $TESSERA_DATA, else ../shared/data beside
/// the sources. Empty if this machine has none.
std::string real_data_folder();

/// Folder of the data sets with true files of MNIST: real_data_folder() or, where this machine has
/// none, that with the first images, which tests/golden/make_excerpts.py writes.
std::string digits_folder();

/// How many of a trace's first `steps`, of 128 images each, those of digits_folder() suffice for.
size_t steps_of_digits(size_t steps);

/// Sets an environment variable, or removes it where `value` is null, for the time of a scope.
class EnvironmentScope {
 public:
  EnvironmentScope(const std::string& name, const char* value);
  ~EnvironmentScope();
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  std::string name_;
  std::string former_;
  bool was_set_;
};

/// Leaves no place where files of data sets could be found.
struct NoData {
  TempFolder folder;
  EnvironmentScope data{"TESSERA_DATA", nullptr};
  EnvironmentScope cache{"XDG_CACHE_HOME", (folder / "none").c_str()};
  EnvironmentScope offline{"TESSERA_OFFLINE", "1"};
};

}  // namespace tessera::test
