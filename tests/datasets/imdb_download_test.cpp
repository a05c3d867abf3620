#include <tessera/datasets/imdb.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include <tessera/datasets/files/sha256.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/https_server.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/tar_file.hpp"

namespace imdb_download_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using test::EnvironmentScope;

namespace {

const std::string archive = "aclImdb_v1.tar.gz";

/// A server with a small archive and an empty cache folder; no reviews elsewhere.
struct Setup {
  test::TempFolder root;
  test::HttpsServer server;
  EnvironmentScope data{"TESSERA_DATA", nullptr};
  EnvironmentScope cache{"XDG_CACHE_HOME", root.path().c_str()};
  EnvironmentScope offline{"TESSERA_OFFLINE", nullptr};

  Setup() {
    std::vector<test::TarEntry> files;
    for (const std::string name :
         {"train/neg/0_1.txt", "train/pos/0_9.txt", "test/neg/0_1.txt", "test/pos/0_9.txt"}) {
      files.push_back({.name = "aclImdb/" + name, .bytes = name});
    }
    test::write_file(server.folder() / archive, test::gzip_bytes(test::tar_bytes(files)));
  }
  std::string folder() const { return root / "tessera/imdb"; }
  DownloadSource source(const std::string& behaviour) const {
    const int descriptor = ::open((server.folder() / archive).c_str(), O_RDONLY);
    const std::string sha256 = sha256_of(descriptor);
    ::close(descriptor);
    return {server.url(behaviour, ""), {{archive, 1 << 20, sha256}}, server.ca_file()};
  }
  std::shared_ptr<const ImdbReviews> get(const std::string& split,
                                         const std::string& behaviour = "good") const {
    return datasets::imdb({.split = split, .size = 2, .download = source(behaviour)});
  }
};

}  // namespace

TEST_CASE("a missing archive is fetched into the cache folder once") {
  const Setup setup;
  const auto train = setup.get("train");
  CHECK(train->text(1) == "train/pos/0_9.txt");
  CHECK(train->announcement() == "imdb: 2 train reviews from " + setup.folder() + "/" + archive);
  CHECK_FALSE(setup.get("test")->synthetic());
  CHECK(setup.server.requests().size() == 1);
  const EnvironmentScope offline("TESSERA_OFFLINE", "1");
  CHECK_FALSE(datasets::imdb()->synthetic());
}

TEST_CASE("a failed download of the archive is tried once and reported once") {
  const Setup setup;
  const auto train = setup.get("train", "missing");
  CHECK(train->synthetic());
  CHECK_THAT(train->announcement(),
             Contains("procedural") &&
                 Contains("The download failed: [" + setup.server.url("missing", "/" + archive)) &&
                 Contains("HTTP status 404"));
  CHECK(train->announcement().find('\n') == std::string::npos);
  CHECK(setup.get("test", "good")->synthetic());
  CHECK(setup.server.requests().size() == 1);
  CHECK_FALSE(std::filesystem::exists(setup.folder()));
}

TEST_CASE("no archive is fetched offline or without a source") {
  const Setup setup;
  {
    const EnvironmentScope offline("TESSERA_OFFLINE", "1");
    CHECK_THAT(setup.get("test")->announcement(), !Contains("download"));
  }
  CHECK(datasets::imdb({.size = 1, .download = std::nullopt})->synthetic());
  CHECK(setup.server.requests().empty());
}

TEST_CASE("the archive of IMDB is fetched from its authors") {
  const DownloadSource& source = datasets::imdb_source();
  CHECK_THAT(source.url, Equals("https://ai.stanford.edu/~amaas/data/sentiment"));
  REQUIRE(source.files.size() == 1);
  CHECK(source.files[0].name == archive);
  CHECK(source.files[0].bytes == 84125825);
  CHECK(source.files[0].sha256.size() == 64);
}

}  // namespace imdb_download_test
