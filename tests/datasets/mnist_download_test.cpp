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

/// A server with small files of MNIST, an empty cache folder, and no other place.
struct Place {
  test::TempFolder root;
  test::HttpsServer server;
  EnvironmentScope data{"TESSERA_DATA", nullptr};
  EnvironmentScope cache{"XDG_CACHE_HOME", root.path().c_str()};
  EnvironmentScope offline{"TESSERA_OFFLINE", nullptr};

  Place() { test::write_mnist(server.folder(), 7, 4, true); }
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

TEST_CASE("files that are nowhere are fetched into the cache folder, once") {
  const Place place;
  const MnistDataset train = place.get("train");
  CHECK(train.size() == 7);
  CHECK(train.announcement() == "mnist: 7 train images from " + place.folder());
  CHECK(place.get("test").size() == 4);
  CHECK(place.server.requests().size() == 4);
  const EnvironmentScope offline("TESSERA_OFFLINE", "1");
  CHECK(datasets::mnist().size() == 7);
}

TEST_CASE("a download that fails is said once and tried once") {
  const Place place;
  const MnistDataset train = place.get("train", "missing");
  CHECK(train.synthetic());
  CHECK(train.size() == 60000);
  CHECK_THAT(train.announcement(), Contains("procedural") &&
                                       Contains("The download failed: [" +
                                                place.server.url("missing", "/train-images")) &&
                                       Contains("HTTP status 404"));
  CHECK(train.announcement().find('\n') == std::string::npos);
  CHECK(place.get("test", "good").synthetic());
  CHECK(place.server.requests().size() == 1);
  CHECK_FALSE(std::filesystem::exists(place.folder()));
}

TEST_CASE("nothing is fetched offline, without a source, or for files at hand") {
  const Place place;
  for (const char* value : {"1", "true"}) {
    const EnvironmentScope offline("TESSERA_OFFLINE", value);
    CHECK_THAT(place.get("test").announcement(), !Contains("download") && Contains("procedural"));
  }
  CHECK(datasets::mnist({.split = "test", .download = std::nullopt}).synthetic());
  const test::TempFolder own;
  test::write_mnist(own.path(), 5, 3);
  CHECK(
      datasets::mnist({.data_dir = own.path().string(), .download = place.source("good")}).size() ==
      5);
  {
    const EnvironmentScope data("TESSERA_DATA", own.path().c_str());
    CHECK(place.get("test").size() == 3);
  }
  CHECK(place.server.requests().empty());
  const EnvironmentScope online("TESSERA_OFFLINE", "0");
  CHECK(place.get("test").size() == 4);
}

}  // namespace mnist_download_test
