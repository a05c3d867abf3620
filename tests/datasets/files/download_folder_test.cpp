#include <tessera/datasets/files/download.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include <tessera/datasets/files/sha256.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/https_server.hpp"

namespace download_folder_test {

using namespace tessera;
using namespace tessera::detail;
using test::TempFolder;

namespace {

/// Two files, as a source and as a server that has them.
struct Place {
  TempFolder root;
  std::string folder = root / "cache/data";
  test::HttpsServer server;

  Place() {
    test::write_file(server.folder() / "a", std::string(3000, 'a'));
    test::write_file(server.folder() / "b", std::string(2000, 'b'));
  }
  DownloadSource source(const std::string& behaviour = "good") const {
    DownloadSource result{server.url(behaviour, ""), {}, server.ca_file()};
    for (const std::string name : {"a", "b"}) {
      const std::string path = server.folder() / name;
      const int descriptor = ::open(path.c_str(), O_RDONLY);
      result.files.push_back({name, std::filesystem::file_size(path), sha256_of(descriptor)});
      ::close(descriptor);
    }
    return result;
  }
  std::string content() const {
    return test::read_file(folder + "/a") + test::read_file(folder + "/b");
  }
  /// Whether nothing lies beside the folder.
  bool tidy() const {
    const auto entries = std::filesystem::directory_iterator(root / "cache");
    return std::distance(begin(entries), end(entries)) == 1;
  }
};

const std::string both = std::string(3000, 'a') + std::string(2000, 'b');

}  // namespace

TEST_CASE("a folder is fetched once, whole") {
  const Place place;
  download_folder(place.source(), place.folder);
  CHECK(place.content() == both);
  CHECK(place.tidy());
  download_folder(place.source(), place.folder);
  CHECK(place.server.requests().size() == 2);
  CHECK(place.tidy());
}

TEST_CASE("a folder appears with all files or not at all, and what came is used again") {
  const Place place;
  DownloadSource source = place.source();
  source.files[1].sha256 = std::string(64, '0');
  CHECK_THROWS_AS(download_folder(source, place.folder), FileError);
  CHECK_FALSE(std::filesystem::exists(place.folder));
  download_folder(place.source(), place.folder);
  CHECK(place.content() == both);
  CHECK(place.server.requests() ==
        std::vector<std::string>{"GET /good/a", "GET /good/b", "GET /good/b"});
}

TEST_CASE("where nothing came nothing is left") {
  const Place place;
  CHECK_THROWS_AS(download_folder(place.source("missing"), place.folder), FileError);
  CHECK(std::filesystem::is_empty(place.root / "cache"));
}

TEST_CASE("a file of another size than the source says is refused") {
  const Place place;
  DownloadSource source = place.source();
  source.files[0].bytes -= 1;
  CHECK_THROWS_WITH(download_folder(source, place.folder),
                    Catch::Matchers::Contains("at most 2999 bytes"));
}

TEST_CASE("a folder that has something in it is left alone, an empty one is filled") {
  const Place place;
  std::filesystem::create_directories(place.folder);
  download_folder(place.source(), place.folder);
  CHECK(place.content() == both);
  test::write_file(place.folder + "/a", "mine");
  download_folder(place.source(), place.folder);
  CHECK(test::read_file(place.folder + "/a") == "mine");
}

TEST_CASE("of several downloads of a folder at once one fetches") {
  const Place place;
  std::vector<std::future<void>> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(std::async(std::launch::async,
                              [&] { download_folder(place.source("slow"), place.folder); }));
  }
  for (std::future<void>& run : runs) run.get();
  CHECK(place.content() == both);
  CHECK(place.server.requests().size() == 2);
  CHECK(place.tidy());
}

}  // namespace download_folder_test
