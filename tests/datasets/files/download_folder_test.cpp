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

/// A server with two files, their source, and an empty cache.
struct Setup {
  TempFolder root;
  std::string folder = root / "cache/data";
  test::HttpsServer server;

  Setup() {
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
  /// Returns whether the cache holds nothing but the folder.
  bool tidy() const {
    const auto entries = std::filesystem::directory_iterator(root / "cache");
    return std::distance(begin(entries), end(entries)) == 1;
  }
};

const std::string both = std::string(3000, 'a') + std::string(2000, 'b');

}  // namespace

TEST_CASE("a folder is fetched once and completely") {
  const Setup setup;
  download_folder(setup.source(), setup.folder);
  CHECK(setup.content() == both);
  CHECK(setup.tidy());
  download_folder(setup.source(), setup.folder);
  CHECK(setup.server.requests().size() == 2);
  CHECK(setup.tidy());
}

TEST_CASE("a folder appears with all files or none; completed files are reused") {
  const Setup setup;
  DownloadSource source = setup.source();
  source.files[1].sha256 = std::string(64, '0');
  CHECK_THROWS_AS(download_folder(source, setup.folder), FileError);
  CHECK_FALSE(std::filesystem::exists(setup.folder));
  download_folder(setup.source(), setup.folder);
  CHECK(setup.content() == both);
  CHECK(setup.server.requests() ==
        std::vector<std::string>{"GET /good/a", "GET /good/b", "GET /good/b"});
}

TEST_CASE("a failed download without data leaves nothing") {
  const Setup setup;
  CHECK_THROWS_AS(download_folder(setup.source("missing"), setup.folder), FileError);
  CHECK(std::filesystem::is_empty(setup.root / "cache"));
}

TEST_CASE("a file whose size differs from the source's is refused") {
  const Setup setup;
  DownloadSource source = setup.source();
  source.files[0].bytes -= 1;
  CHECK_THROWS_WITH(download_folder(source, setup.folder),
                    Catch::Matchers::Contains("at most 2999 bytes"));
}

TEST_CASE("a non-empty folder is left unchanged, an empty one is filled") {
  const Setup setup;
  std::filesystem::create_directories(setup.folder);
  download_folder(setup.source(), setup.folder);
  CHECK(setup.content() == both);
  test::write_file(setup.folder + "/a", "mine");
  download_folder(setup.source(), setup.folder);
  CHECK(test::read_file(setup.folder + "/a") == "mine");
}

TEST_CASE("of several concurrent downloads of a folder one fetches") {
  const Setup setup;
  std::vector<std::future<void>> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(std::async(std::launch::async,
                              [&] { download_folder(setup.source("slow"), setup.folder); }));
  }
  for (std::future<void>& run : runs) run.get();
  CHECK(setup.content() == both);
  CHECK(setup.server.requests().size() == 2);
  CHECK(setup.tidy());
}

}  // namespace download_folder_test
