#include <tessera/datasets/mnist.hpp>

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/warnings.hpp"

namespace mnist_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::EnvironmentScope;
using test::NoData;

namespace {

Examples all_of(const Dataset& data) {
  std::vector<int64_t> rows(static_cast<size_t>(data.size()));
  std::iota(rows.begin(), rows.end(), 0);
  return data.get(rows);
}

/// Returns image i of write_mnist().
at::Tensor image(int i) { return (at::arange(784).add(i)).remainder(256).reshape({1, 28, 28}); }

}  // namespace

TEST_CASE("files are read plain or gzipped, from a data folder or its subfolder mnist") {
  const test::TempFolder folder;
  for (const bool gzip : {false, true}) {
    for (const std::string subfolder : {"plain", "packed/mnist"}) {
      const test::TempFolder root;
      test::write_mnist(root / subfolder, 7, 4, gzip);
      const std::string data_dir = (root / subfolder.substr(0, subfolder.find('/'))).string();
      const MnistDataset train = datasets::mnist({.data_dir = data_dir});
      CHECK(train.size() == 7);
      CHECK(train.name() == "mnist");
      CHECK_FALSE(train.synthetic());
      CHECK(train.announcement() == "mnist: 7 train images from " + (root / subfolder).string());
      const MnistDataset test = datasets::mnist({.data_dir = data_dir, .split = "test"});
      CHECK(test.size() == 4);
      const Examples got = test.get(std::vector<int64_t>{3, 0});
      const at::Tensor bytes = at::cat({image(103), image(100)});
      CHECK(difference(got.x[0], bytes.to(at::kFloat) / 255.0f) == "");
      CHECK(difference(got.y[0], at::tensor({9, 0}, at::kLong)) == "");
    }
  }
}

TEST_CASE("images can be flat, float64 and limited in number") {
  const test::TempFolder folder;
  test::write_mnist(folder.path(), 7, 4);
  const MnistDataset data = datasets::mnist(
      {.data_dir = folder.path().string(), .size = 5, .flatten = true, .dtype = at::kDouble});
  CHECK(data.size() == 5);
  CHECK(data.input_shapes() == std::vector<Shape>{{784}});
  const Examples got = all_of(data);
  CHECK(difference(got.x[0][2], image(2).reshape({784}).to(at::kDouble) / 255.0) == "");
  CHECK(got.y[0].numel() == 5);
  const MnistDataset whole = datasets::mnist({.data_dir = folder.path().string()});
  CHECK(whole.input_shapes() == std::vector<Shape>{{28, 28}});
}

TEST_CASE("a pixel is its byte divided by 255 in float32, bit for bit") {
  const test::TempFolder folder;
  test::write_mnist(folder.path(), 1, 1);
  const Examples got =
      datasets::mnist({.data_dir = folder.path().string()}).get(std::vector<int64_t>{0});
  const float* pixels = got.x[0].data_ptr<float>();
  for (int value = 0; value < 256; ++value) {
    CHECK(pixels[value] == static_cast<float>(value) / 255.0f);
  }
}

TEST_CASE("MNIST files are searched in $TESSERA_DATA, then in the cache folder") {
  NoData none;
  const test::TempFolder root;
  test::write_mnist(root / "cache/tessera/mnist", 3, 2);
  const EnvironmentScope cache("XDG_CACHE_HOME", (root / "cache").c_str());
  CHECK(datasets::mnist().size() == 3);
  const EnvironmentScope data("TESSERA_DATA", (root / "data").c_str());
  CHECK(datasets::mnist().size() == 3);
  test::write_mnist(root / "data/mnist", 6, 2, true);
  CHECK(datasets::mnist().size() == 6);
  test::write_mnist(root / "own", 9, 2);
  CHECK(datasets::mnist({.data_dir = (root / "own").string()}).size() == 9);
}

TEST_CASE("the default cache folder is below the home folder") {
  NoData none;
  const test::TempFolder root;
  const EnvironmentScope cache("XDG_CACHE_HOME", nullptr);
  const EnvironmentScope home("HOME", root.path().c_str());
  CHECK(datasets::mnist({.size = 1}).synthetic());
  test::write_mnist(root / ".cache/tessera/mnist", 3, 2);
  CHECK(datasets::mnist().size() == 3);
}

TEST_CASE("synthetic digits warn unless they are requested, and can be refused") {
  NoData none;
  const test::Warnings heard;
  const MnistDataset unasked = datasets::mnist({.size = 51});
  CHECK(heard.text() == "Warning: " + unasked.announcement() + "\n");
  CHECK(datasets::mnist({.size = 51}).synthetic());
  CHECK(datasets::mnist({.size = 52, .synthetic = true}).synthetic());
  CHECK(heard.lines() == 1);
  CHECK_THROWS_WITH(datasets::mnist({.size = 50, .synthetic = false}),
                    Contains("[mnist] the files of the data set are there. Received: mnist "
                             "(synthetic): 50 procedural train images, as no files were found"));
}

TEST_CASE("without files the digits are synthetic and announced as such") {
  NoData none;
  const EnvironmentScope data("TESSERA_DATA", none.folder.path().c_str());
  const MnistDataset train = datasets::mnist({.size = 50});
  CHECK(train.synthetic());
  CHECK(train.name() == "mnist (synthetic)");
  CHECK_THAT(train.announcement(), Contains("mnist (synthetic): 50 procedural train images") &&
                                       Contains(none.folder.path().string()) &&
                                       Contains("--data-dir"));
  CHECK(train.announcement().find('\n') == std::string::npos);
  const Examples got = all_of(train);
  CHECK(got.x[0].sizes() == at::IntArrayRef({50, 28, 28}));
  CHECK(got.x[0].min().item<float>() == 0.0f);
  CHECK(got.x[0].max().item<float>() <= 1.0f);
  CHECK(got.x[0].max().item<float>() > 0.5f);
  CHECK(got.y[0].min().item<int64_t>() >= 0);
  CHECK(got.y[0].max().item<int64_t>() <= 9);
  CHECK(difference(all_of(datasets::mnist({.size = 20})).x[0], got.x[0].narrow(0, 0, 20)) == "");
  const Examples test = all_of(datasets::mnist({.split = "test", .size = 50}));
  CHECK(difference(test.x[0], got.x[0]) != "");
  CHECK_THROWS_WITH(datasets::mnist({.split = "test", .size = 10001}),
                    Contains("[mnist test] size is at most 10000") && Contains("10001"));
}

TEST_CASE("the first real digits are read correctly") {
  const std::string folder = test::golden_path("excerpts").string();
  const MnistDataset train = datasets::mnist({.data_dir = folder});
  CHECK(train.size() == 1280);
  CHECK(train.name() == "mnist");
  const Examples got = all_of(train);
  CHECK(difference(got.y[0].narrow(0, 0, 5), at::tensor({5, 0, 4, 1, 9}, at::kLong)) == "");
  CHECK(got.x[0].mean(at::kDouble).item<double>() == Approx(0.1286296628));
  const Examples test = all_of(datasets::mnist({.data_dir = folder, .split = "test"}));
  CHECK(difference(test.y[0].narrow(0, 0, 3), at::tensor({7, 2, 1}, at::kLong)) == "");
}

TEST_CASE("the real MNIST is read correctly") {
  const std::string folder = test::real_data_folder();
  if (folder.empty()) return test::skip("there is no MNIST in $TESSERA_DATA or ../shared/data");
  const MnistDataset train = datasets::mnist({.data_dir = folder});
  const MnistDataset test = datasets::mnist({.data_dir = folder, .split = "test"});
  CHECK(train.size() == 60000);
  CHECK(test.size() == 10000);
  const Examples first = train.get(std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(difference(first.y[0], at::tensor({5, 0, 4, 1, 9}, at::kLong)) == "");
  const Examples others = test.get(std::vector<int64_t>{0, 1, 2});
  CHECK(difference(others.y[0], at::tensor({7, 2, 1}, at::kLong)) == "");
  const Examples excerpt = all_of(datasets::mnist({.data_dir = test::golden_path("excerpts")}));
  const Examples same = all_of(datasets::mnist({.data_dir = folder, .size = 1280}));
  CHECK(difference(excerpt.x[0], same.x[0]) == "");
  CHECK(difference(excerpt.y[0], same.y[0]) == "");
  CHECK(all_of(train).x[0].mean(at::kDouble).item<double>() == Approx(0.1306604762738429));
  CHECK(all_of(test).x[0].mean(at::kDouble).item<double>() == Approx(0.13251460696903547));
}

}  // namespace mnist_test
