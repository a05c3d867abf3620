#include <tessera/datasets/files/download.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include <tessera/datasets/files/sha256.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/https_server.hpp"

namespace download_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::HttpsServer;
using test::TempFolder;

namespace {

using Lines = std::vector<std::string>;

std::string sum_of(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  const std::string sum = sha256_of(descriptor);
  ::close(descriptor);
  return sum;
}

/// 200 kB in which every part differs from every other.
std::string sample() {
  std::string bytes;
  for (int i = 0; i < 50000; ++i) bytes += std::to_string(10000 + i).substr(1);
  return bytes;
}

struct Place {
  TempFolder folder;
  std::string path = folder / "deep/er/file.gz";
  std::string part = path + ".part";
  HttpsServer server{sample()};
  std::string sha256;

  Place() {
    test::write_file(folder / "sample", sample());
    sha256 = sum_of(folder / "sample");
    std::filesystem::create_directories(folder / "deep/er");
  }
  DownloadOptions options(const std::string& behaviour) const {
    return {.url = server.url(behaviour),
            .sha256 = sha256,
            .path = path,
            .stall_seconds = 1,
            .ca_file = server.ca_file()};
  }
  void get(const std::string& behaviour) const { download(options(behaviour)); }
  /// The error's text after a failure that leaves nothing at the path.
  std::string error_of(const DownloadOptions& asked) const {
    try {
      download(asked);
    } catch (const FileError& error) {
      const std::string text = error.what();
      CHECK(text.find('\n') == std::string::npos);
      CHECK_FALSE(std::filesystem::exists(path));
      return text;
    }
    return "no error";
  }
  bool has_part() const { return std::filesystem::exists(part); }
};

}  // namespace

TEST_CASE("the SHA-256 of a file is that of the standard's examples") {
  const TempFolder folder;
  test::write_file(folder / "abc", "abc");
  CHECK(sum_of(folder / "abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  test::write_file(folder / "million", std::string(1000000, 'a'));
  CHECK(sum_of(folder / "million") ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sha256_of(-1).empty());
}

TEST_CASE("a download puts the whole file at its path, and fetches it once") {
  const Place place;
  std::filesystem::remove_all(place.folder / "deep");
  place.get("good");
  CHECK(test::read_file(place.path) == sample());
  CHECK_FALSE(place.has_part());
  place.get("good");
  CHECK(place.server.requests() == Lines{"GET /good/file"});
  test::write_file(place.path, "something else");
  place.get("redirect");
  CHECK(test::read_file(place.path) == sample());
}

TEST_CASE("an interrupted download goes on where it stopped") {
  const Place place;
  CHECK_THAT(place.error_of(place.options("short")), Contains("with 100000 bytes kept"));
  CHECK(test::read_file(place.part) == sample().substr(0, 100000));
  place.get("short");
  CHECK(test::read_file(place.path) == sample());
  CHECK(place.server.requests() == Lines{"GET /short/file", "GET /short/file bytes=100000-"});
  CHECK_FALSE(place.has_part());
}

TEST_CASE("what lies in the part file may be anything") {
  const Place place;
  const std::string whole = sample();
  test::write_file(place.part, whole.substr(0, 1234));
  place.get("norange");
  CHECK(test::read_file(place.path) == whole);
  CHECK(place.server.requests().size() == 1);
  for (const std::string& content : {whole + "more", "wrong" + whole.substr(5, 700)}) {
    std::filesystem::remove(place.path);
    test::write_file(place.part, content);
    place.get("good");
    CHECK(test::read_file(place.path) == whole);
    CHECK_FALSE(place.has_part());
  }
  std::filesystem::remove(place.path);
  test::write_file(place.part, whole);
  const size_t before = place.server.requests().size();
  place.get("good");
  CHECK(test::read_file(place.path) == whole);
  CHECK(place.server.requests().size() == before);
}

TEST_CASE("a wrong hash leaves neither file nor part") {
  const Place place;
  DownloadOptions asked = place.options("good");
  asked.sha256 = std::string(64, 'A');
  CHECK_THAT(place.error_of(asked), Contains("the file has the SHA-256 " + std::string(64, 'a')) &&
                                        Contains("Received: " + place.sha256));
  CHECK_FALSE(place.has_part());
}

TEST_CASE("a file that is too large is refused, with or without a length") {
  const Place place;
  for (const char* behaviour : {"good", "unsized"}) {
    DownloadOptions asked = place.options(behaviour);
    asked.max_bytes = 199999;
    CHECK_THAT(place.error_of(asked), Contains("at most 199999 bytes. Received: more"));
    CHECK_FALSE(place.has_part());
    test::write_file(place.part, sample().substr(0, 150000));
    CHECK_THAT(place.error_of(asked), Contains("Received: more"));
    CHECK_FALSE(place.has_part());
    asked.max_bytes = 200000;
    download(asked);
    std::filesystem::remove(place.path);
  }
}

TEST_CASE("failures say why in one line") {
  const Place place;
  CHECK_THAT(place.error_of(place.options("missing")),
             Contains("[" + place.server.url("missing") + "]") && Contains("HTTP status 404") &&
                 Contains("put the file at " + place.path));
  CHECK_THAT(place.error_of(place.options("downgrade")), Contains("\"http\""));
  CHECK(place.server.requests().back() == "GET /downgrade/file");
  DownloadOptions asked = place.options("good");
  asked.ca_file = "";
  CHECK_THAT(place.error_of(asked), Contains("certificate"));
  asked.url = "https://127.0.0.1:1/file";
  CHECK_THAT(place.error_of(asked), Contains("connect"));
  asked.url = "https://name.invalid/file";
  CHECK_THAT(place.error_of(asked), Contains("name.invalid"));
  CHECK_FALSE(place.has_part());
  asked.path = "/proc/none/file";
  CHECK_THAT(place.error_of(asked), Contains("the folder can be made"));
}

TEST_CASE("a server that stalls is left, and what came is kept") {
  const Place place;
  const auto start = std::chrono::steady_clock::now();
  CHECK_THAT(place.error_of(place.options("stall")), Contains("with 1000 bytes kept"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  place.get("good");
  CHECK(place.server.requests().back() == "GET /good/file bytes=1000-");
}

TEST_CASE("addresses and hashes are checked before anything is asked for") {
  const Place place;
  DownloadOptions asked = place.options("good");
  asked.sha256.pop_back();
  CHECK_THROWS_AS(download(asked), ConfigError);
  asked.sha256 += 'g';
  CHECK_THROWS_WITH(download(asked), Contains("64 hexadecimal digits"));
  asked = place.options("good");
  const std::string plain = "http" + asked.url.substr(5);
  for (const std::string& url : {plain, "file://" + place.path, std::string()}) {
    asked.url = url;
    CHECK_THROWS_AS(download(asked), ConfigError);
    CHECK_THROWS_WITH(download(asked), Contains("https"));
  }
  CHECK(place.server.requests().empty());
}

TEST_CASE("of two processes at once one fetches, and both end with the file") {
  const Place place;
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      place.get("slow");
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(test::read_file(place.path) == sample() ? 0 : 1);
  }
  place.get("slow");
  CHECK(test::read_file(place.path) == sample());
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(place.server.requests().size() == 1);
  CHECK_FALSE(place.has_part());
}

}  // namespace download_test
