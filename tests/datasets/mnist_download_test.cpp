#include <tessera/datasets/mnist.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include <tessera/datasets/files/sha256.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/https_server.hpp"
#include "tests/support/idx_files.hpp"

namespace mnist_download_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::EnvironmentScope;

namespace {

/// A server with small MNIST files and an empty cache folder; no files elsewhere.
struct Setup {
  test::TempFolder root;
  test::HttpsServer server;
  EnvironmentScope data{"TESSERA_DATA", nullptr};
  EnvironmentScope cache{"XDG_CACHE_HOME", root.path().c_str()};
  EnvironmentScope offline{"TESSERA_OFFLINE", nullptr};

  Setup() { test::write_mnist(server.folder(), 7, 4, true); }
  std::string folder() const { return root / "tessera/mnist"; }
  DownloadSource source(const std::string& behaviour) const {
    DownloadSource result{server.url(behaviour, ""), {}, server.ca_file()};
    for (const SourceFile& file : datasets::mnist_source().files) {
      const std::string path = server.folder() / file.name;
      const int descriptor = ::open(path.c_str(), O_RDONLY);
      result.files.push_back({file.name, 1 << 20, sha256_of(descriptor)});
      ::close(descriptor);
    }
    return result;
  }
  MnistDataset get(const std::string& split, const std::string& behaviour = "good") const {
    return datasets::mnist({.split = split, .download = source(behaviour)});
  }
};

}  // namespace

TEST_CASE("missing MNIST files are fetched into the cache folder once") {
  const Setup setup;
  const MnistDataset train = setup.get("train");
  CHECK(train.size() == 7);
  CHECK(train.announcement() == "mnist: 7 train images from " + setup.folder());
  CHECK(setup.get("test").size() == 4);
  CHECK(setup.server.requests().size() == 4);
  const EnvironmentScope offline("TESSERA_OFFLINE", "1");
  CHECK(datasets::mnist().size() == 7);
}

TEST_CASE("a failed download of MNIST is tried once and reported once") {
  const Setup setup;
  const MnistDataset train = setup.get("train", "missing");
  CHECK(train.synthetic());
  CHECK(train.size() == 60000);
  CHECK_THAT(train.announcement(), Contains("procedural") &&
                                       Contains("The download failed: [" +
                                                setup.server.url("missing", "/train-images")) &&
                                       Contains("HTTP status 404"));
  CHECK(train.announcement().find('\n') == std::string::npos);
  CHECK(setup.get("test", "good").synthetic());
  CHECK(setup.server.requests().size() == 1);
  CHECK_FALSE(std::filesystem::exists(setup.folder()));
}

TEST_CASE("nothing is fetched offline, without a source, or if the files exist") {
  const Setup setup;
  for (const char* value : {"1", "true"}) {
    const EnvironmentScope offline("TESSERA_OFFLINE", value);
    CHECK_THAT(setup.get("test").announcement(), !Contains("download") && Contains("procedural"));
  }
  CHECK(datasets::mnist({.split = "test", .download = std::nullopt}).synthetic());
  const test::TempFolder own;
  test::write_mnist(own.path(), 5, 3);
  CHECK(
      datasets::mnist({.data_dir = own.path().string(), .download = setup.source("good")}).size() ==
      5);
  {
    const EnvironmentScope data("TESSERA_DATA", own.path().c_str());
    CHECK(setup.get("test").size() == 3);
  }
  CHECK(setup.server.requests().empty());
  const EnvironmentScope online("TESSERA_OFFLINE", "0");
  CHECK(setup.get("test").size() == 4);
}

}  // namespace mnist_download_test
