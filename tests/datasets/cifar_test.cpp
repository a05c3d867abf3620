#include <tessera/datasets/cifar.hpp>

#include <filesystem>
#include <future>

#include <ATen/ATen.h>

#include <tessera/datasets/mnist.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/tar_file.hpp"

namespace cifar_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns rows of labels and a picture whose byte p of colour c is 10 c + p modulo 7; the first
/// byte is the row number.
std::string rows_of(int count, int first, int label_bytes) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    for (int l = 0; l < label_bytes; ++l) bytes += static_cast<char>((first + i + l) % 10);
    for (int c = 0; c < 3; ++c) {
      for (int p = 0; p < 1024; ++p) bytes += static_cast<char>(10 * c + p % 7);
    }
    bytes[bytes.size() - 3072] = static_cast<char>(first + i);
  }
  return bytes;
}

void write_cifar10(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "cifar-10-batches-bin");
  for (int i = 0; i < 5; ++i) {
    test::write_file(folder / "cifar-10-batches-bin" / str("data_batch_", i + 1, ".bin"),
                     rows_of(4, 4 * i, 1));
  }
  test::write_file(folder / "cifar-10-batches-bin/test_batch.bin", rows_of(3, 50, 1));
}

}  // namespace

TEST_CASE("CIFAR-10 is read from its folder and its archive, batch file after batch file") {
  const test::TempFolder folder;
  write_cifar10(folder.path());
  std::vector<test::TarEntry> entries;
  for (int i = 5; i > 0; --i) {
    entries.push_back({.name = str("cifar-10-batches-bin/data_batch_", i, ".bin"),
                       .bytes = rows_of(4, 4 * (i - 1), 1)});
  }
  const std::string archive = folder / "cifar-10-binary.tar.gz";
  test::write_file(archive, test::gzip_bytes(test::tar_bytes(entries)));
  for (const std::string& path : {folder.path().string(), archive}) {
    CAPTURE(path);
    const datasets::CifarDataset train = datasets::cifar10({.path = path});
    CHECK(train.size() == 20);
    CHECK(train.name() == "cifar10");
    CHECK(train.input_shapes() == std::vector<Shape>{{32, 32, 3}});
    const Examples got = train.get(std::vector<int64_t>{0, 13});
    CHECK(got.x[0].sizes() == at::IntArrayRef({2, 32, 32, 3}));
    CHECK(got.x[0][1][0][0][0].item<float>() == 13 / 255.0f);
    // Row 1, column 2 is byte 34 of each colour.
    CHECK(got.x[0][1][1][2][0].item<float>() == 6 / 255.0f);
    CHECK(got.x[0][1][1][2][2].item<float>() == 26 / 255.0f);
    CHECK(got.y[0].scalar_type() == at::kLong);
    CHECK(got.y[0][1].item<int64_t>() == 3);
  }
  const auto test = datasets::cifar10({.path = folder.path().string(), .split = "test", .size = 2});
  CHECK(test.size() == 2);
  CHECK(test.get(std::vector<int64_t>{1}).y[0].item<int64_t>() == 1);
}

TEST_CASE("CIFAR-100 has fine and coarse labels") {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder / "cifar-100-binary");
  test::write_file(folder / "cifar-100-binary/train.bin", rows_of(3, 4, 2));
  const std::string path = folder.path().string();
  const std::vector<int64_t> rows{2};
  CHECK(datasets::cifar100({.path = path}).get(rows).y[0].item<int64_t>() == 7);
  const auto coarse = datasets::cifar100({.path = path, .label_mode = "coarse"});
  CHECK(coarse.get(rows).y[0].item<int64_t>() == 6);
  CHECK(coarse.get(rows).x[0][0][0][1][1].item<float>() == 11 / 255.0f);
}

TEST_CASE("missing and corrupt files of CIFAR are refused by name") {
  const test::NoData none;
  const test::TempFolder folder;
  const std::string path = folder.path().string();
  const auto error = [&](const Cifar10Options& options) {
    return test::error_line([&] { datasets::cifar10(options); });
  };
  CHECK_THAT(error({}), Contains("[cifar10] cifar-10-binary.tar.gz or its folder "
                                 "cifar-10-batches-bin in ") &&
                            Contains("none/tessera/cifar10") && Contains("put the archive there"));
  CHECK_THAT(error({.path = path}), Contains(path) && Contains("neither there"));
  CHECK_THAT(error({.split = "val"}), Contains("split is one of \"train\", \"test\""));
  CHECK_THAT(error({.path = path, .size = 0}), Contains("size is at least 1"));
  write_cifar10(folder.path());
  CHECK_THAT(error({.path = path, .size = 21}), Contains("size is at most 20"));
  const std::string batch = folder / "cifar-10-batches-bin/data_batch_3.bin";
  std::string bytes = rows_of(4, 8, 1);
  test::write_file(batch, bytes.substr(0, bytes.size() - 1));
  CHECK_THAT(error({.path = path}),
             Contains("data_batch_3.bin] rows of 3073 bytes. Received: 12291 bytes."));
  bytes[3073] = 10;
  test::write_file(batch, bytes);
  CHECK_THAT(error({.path = path}), Contains("data_batch_3.bin, byte 3073] labels are 0 to 9. "
                                             "Received: 10 for image 1."));
  test::write_file(folder / "x.tar.gz", test::gzip_bytes(test::tar_bytes({})));
  CHECK_THAT(error({.path = folder / "x.tar.gz"}), Contains("an archive without it"));
}

TEST_CASE("Fashion-MNIST is read from its own folder and not from MNIST's files") {
  const test::TempFolder folder;
  const test::EnvironmentScope data("TESSERA_DATA", folder.path().c_str());
  const test::EnvironmentScope cache("XDG_CACHE_HOME", (folder / "none").c_str());
  const test::EnvironmentScope offline("TESSERA_OFFLINE", "1");
  test::write_mnist(folder.path(), 5, 2);
  const std::string error = test::error_line([] { datasets::fashion_mnist(); });
  CHECK_THAT(error, Contains("[fashion_mnist] its files in ") &&
                        Contains((folder / "fashion_mnist").string()) &&
                        Contains("put train-images-idx3-ubyte.gz and the other files there"));
  std::filesystem::create_directories(folder / "fashion_mnist");
  test::write_mnist(folder / "fashion_mnist", 7, 3);
  const MnistDataset train = datasets::fashion_mnist({.flatten = true});
  CHECK(train.size() == 7);
  CHECK(train.name() == "fashion_mnist");
  CHECK(train.input_shapes() == std::vector<Shape>{{784}});
  CHECK(datasets::fashion_mnist({.data_dir = folder.path().string(), .split = "test"}).size() == 3);
  const auto option_error = [](const FashionMnistOptions& options) {
    return test::error_line([&] { datasets::fashion_mnist(options); });
  };
  CHECK_THAT(option_error({.size = 8}), Contains("[fashion_mnist train] size is at most 7"));
  CHECK_THAT(option_error({.size = 0}), Contains("[fashion_mnist] size is at least 1"));
  CHECK_THAT(option_error({.split = "all"}), Contains("[fashion_mnist] split is"));
  CHECK_THAT(option_error({.dtype = at::kHalf}), Contains("[fashion_mnist] dtype is"));
}

TEST_CASE("rows of CIFAR may be read from several threads at a time") {
  const test::TempFolder folder;
  write_cifar10(folder.path());
  const datasets::CifarDataset train = datasets::cifar10({.path = folder.path().string()});
  CHECK(train.concurrent());
  const std::vector<int64_t> rows{3, 0, 19};
  const Examples expected = train.get(rows);
  std::vector<std::future<bool>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::async(std::launch::async, [&] {
      bool same = true;
      for (int j = 0; j < 20; ++j) same = same && train.get(rows).x[0].equal(expected.x[0]);
      return same;
    }));
  }
  for (std::future<bool>& other : others) CHECK(other.get());
}

}  // namespace cifar_test
