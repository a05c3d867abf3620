#include <tessera/datasets/mnist.hpp>

#include <functional>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"

namespace mnist_errors_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::idx_bytes;

namespace {

const std::string images = "train-images-idx3-ubyte";
const std::string labels = "train-labels-idx1-ubyte";

/// Returns the text of the FileError from reading a good folder of 5 images after `damage`.
std::string error_after(const std::function<void(const std::filesystem::path&)>& damage,
                        const MnistOptions& options = {}) {
  const test::TempFolder folder;
  test::write_mnist(folder.path(), 5, 3);
  damage(folder.path());
  MnistOptions there = options;
  there.data_dir = folder.path().string();
  try {
    datasets::mnist(there);
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "";
}

/// Returns the text of the error after a file's bytes were replaced.
std::string error_of(const std::string& name, const std::string& bytes) {
  return error_after(
      [&](const std::filesystem::path& folder) { test::write_file(folder / name, bytes); });
}

std::string good(const std::string& name) {
  const test::TempFolder folder;
  test::write_mnist(folder.path(), 5, 3);
  return test::read_file(folder / name);
}

}  // namespace

TEST_CASE("a data folder without the files is an error, never synthetic") {
  const test::TempFolder empty;
  const std::string folder = empty.path().string();
  CHECK_THROWS_AS(datasets::mnist({.data_dir = folder}), FileError);
  CHECK_THROWS_WITH(datasets::mnist({.data_dir = folder}),
                    Contains("[" + folder + "]") && Contains(images + " or " + images + ".gz") &&
                        Contains("neither there"));
  CHECK_THROWS_WITH(datasets::mnist({.data_dir = folder, .split = "test"}),
                    Contains("t10k-images-idx3-ubyte.gz"));
  CHECK_THROWS_WITH(datasets::mnist({.data_dir = folder + "/none"}), Contains("no such folder"));
}

TEST_CASE("a folder with only some of the files is an error wherever it is") {
  const test::EnvironmentScope cache("XDG_CACHE_HOME", "/nowhere");
  for (const std::string& missing : {images, labels}) {
    const test::TempFolder folder;
    test::write_mnist(folder.path(), 5, 3);
    std::filesystem::remove(folder / missing);
    const test::EnvironmentScope data("TESSERA_DATA", folder.path().c_str());
    CHECK_THROWS_WITH(datasets::mnist(), Contains("the data folder has " + missing));
    CHECK_THROWS_AS(datasets::mnist({.data_dir = folder.path().string()}), FileError);
    CHECK(datasets::mnist({.split = "test"}).size() == 3);
  }
}

TEST_CASE("damaged files are refused with file and offset") {
  CHECK(error_of(images, good(images)).empty());
  for (const std::string& name : {images, labels}) {
    const std::string whole = good(name);
    for (const size_t length : {size_t{0}, size_t{3}, size_t{6}, whole.size() - 1}) {
      CAPTURE(name, length);
      CHECK_THAT(error_of(name, whole.substr(0, length)), Contains(name + ", byte "));
    }
    CHECK_THAT(error_of(name, whole + "a"), Contains(name) && Contains("more bytes"));
    CHECK_THAT(error_of(name, "\x01" + whole.substr(1)), Contains("magic number"));
  }
  CHECK_THAT(error_of(images, idx_bytes({UINT32_MAX, 28, 28}, "a")),
             Contains("byte 4] an IDX file may hold at most 1073741824 bytes"));
  CHECK_THAT(error_of(images, idx_bytes({1000000, 28, 28}, "a")), Contains("the file ends here"));
  const auto malformed = [](const std::filesystem::path& folder) {
    std::filesystem::remove(folder / images);
    test::write_gzip(folder / (images + ".gz"), good(images));
    std::string packed = test::read_file(folder / (images + ".gz"));
    packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
    test::write_file(folder / (images + ".gz"), packed);
  };
  CHECK_THAT(error_after(malformed), Contains(images + ".gz"));
}

TEST_CASE("files that are not MNIST are refused") {
  CHECK_THAT(error_of(labels, idx_bytes({4}, "abcd")),
             Contains(labels) && Contains("one label for each of the 5 images in") &&
                 Contains("shape (4,)"));
  CHECK_THAT(error_of(labels, idx_bytes({5, 1}, "abcde")), Contains("shape (5, 1)"));
  CHECK_THAT(error_of(labels, idx_bytes({5}, std::string("\1\2\3\x0a\4", 5))),
             Contains(labels + ", byte 11]") && Contains("10 for image 3"));
  CHECK_THAT(error_of(images, idx_bytes({5, 2, 2}, std::string(20, 'a'))),
             Contains(images) && Contains("(n, 28, 28). Received: (5, 2, 2)"));
  CHECK_THAT(error_of(images, idx_bytes({5}, "abcde")), Contains("Received: (5,)"));
  CHECK_THAT(error_of(images, idx_bytes({0, 28, 28}, "")), Contains("Received: (0, 28, 28)"));
  const auto folder_for_file = [](const std::filesystem::path& folder) {
    std::filesystem::remove(folder / labels);
    std::filesystem::create_directory(folder / labels);
  };
  CHECK_THAT(error_after(folder_for_file), Contains("a folder"));
}

TEST_CASE("wrong options are refused in one line") {
  const test::TempFolder folder;
  test::write_mnist(folder.path(), 5, 3);
  const std::string dir = folder.path().string();
  CHECK_THROWS_WITH(datasets::mnist({.data_dir = dir, .size = 6}),
                    Contains("[mnist train] size is at most 5") && Contains("Received: 6"));
  CHECK_THROWS_AS(datasets::mnist({.data_dir = dir, .size = 0}), ConfigError);
  CHECK_THROWS_AS(datasets::mnist({.data_dir = dir, .size = -3}), ConfigError);
  CHECK_THROWS_WITH(datasets::mnist({.data_dir = dir, .split = "dev"}),
                    Contains(R"(split is "train" or "test". Received: "dev")"));
  CHECK_THROWS_WITH(datasets::mnist({.data_dir = dir, .dtype = at::kHalf}), Contains("float16"));
}

}  // namespace mnist_errors_test
