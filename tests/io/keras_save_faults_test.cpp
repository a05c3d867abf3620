#include <tessera/tessera.hpp>

#include <filesystem>
#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/load_model.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"

namespace keras_save_faults_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

ModelHandle model_of(int64_t units) { return Sequential({Input({8}), Dense(units), Dense(2)}); }

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// Returns all bytes of a file or folder.
std::string content(const fs::path& path) {
  if (!fs::is_directory(path)) return test::read_file(path);
  std::string all;
  for (const char* name : {"config.json", "metadata.json", "model.weights.h5"}) {
    all += test::read_file(path / name);
  }
  return all;
}

}  // namespace

TEST_CASE("a save on a full disk leaves only the previous file") {
  const ModelHandle small = model_of(3), large = model_of(4000);
  const struct {
    const char* name;
    std::function<void(const ModelHandle&, const std::string&)> save;
  } ways[] = {
      {"x.keras", [](const ModelHandle& model, const std::string& path) { model.save(path); }},
      {"x", [](const ModelHandle& model,
               const std::string& path) { model.save(path, {.zipped = false}); }},
      {"x.weights.h5",
       [](const ModelHandle& model, const std::string& path) { model.save_weights(path); }}};
  for (const auto& way : ways) {
    const test::TempFolder folder;
    const std::string path = folder / way.name;
    way.save(small, path);
    const std::string before = content(path);
    // Fails in the first bytes, in those of the HDF5 library, and in the data.
    for (const rlim_t bytes : {0, 10, 500, 3000, 5000, 20000, 100000}) {
      CAPTURE(path, bytes);
      std::string line;
      {
        const test::FileSizeLimit limit(bytes);
        line = test::error_line([&] { way.save(large, path); });
      }
      CHECK_THAT(line, Catch::Matchers::StartsWith("[" + path));
      CHECK_THAT(line, Contains("File too large") || Contains("the file must be writable"));
      CHECK(content(path) == before);
      CHECK(entries_in(folder.path()) == 1);
    }
    way.save(large, path);
    CHECK(content(path).size() > 170000);
    CHECK(entries_in(folder.path()) == 1);
  }
}

TEST_CASE("leftovers of killed processes' saves are removed by the next save") {
  const test::TempFolder folder;
  const auto left = [&](int number) {
    return folder / (".tessera-" + test::ended_number(number) + ".tmp");
  };
  const ModelHandle model = model_of(3);
  test::write_file(left(0), "half an archive");
  model.save(folder / "x.keras");
  CHECK(entries_in(folder.path()) == 1);
  test::write_file(left(1), "half a file");
  model.save_weights(folder / "x.weights.h5");
  CHECK(entries_in(folder.path()) == 2);
  fs::create_directory(left(2));
  test::write_file(left(2) / "config.json", "{");
  model.save(folder / "x", {.zipped = false});
  CHECK(entries_in(folder.path()) == 3);
}

}  // namespace keras_save_faults_test
