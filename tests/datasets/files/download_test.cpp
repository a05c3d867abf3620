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

/// Returns 200 kB in which all pieces differ.
std::string sample() {
  std::string bytes;
  for (int i = 0; i < 50000; ++i) bytes += std::to_string(10000 + i).substr(1);
  return bytes;
}

struct Setup {
  TempFolder folder;
  std::string path = folder / "deep/er/file.gz";
  std::string part = path + ".part";
  HttpsServer server{sample()};
  std::string sha256;

  Setup() {
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
  /// Returns the error's text; checks that nothing is left at the path.
  std::string error_of(const DownloadOptions& requested) const {
    try {
      download(requested);
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

TEST_CASE("the SHA-256 of a file matches the standard's examples") {
  const TempFolder folder;
  test::write_file(folder / "abc", "abc");
  CHECK(sum_of(folder / "abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  test::write_file(folder / "million", std::string(1000000, 'a'));
  CHECK(sum_of(folder / "million") ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sha256_of(-1).empty());
}

TEST_CASE("a download puts the complete file at its path and fetches it once") {
  const Setup setup;
  std::filesystem::remove_all(setup.folder / "deep");
  setup.get("good");
  CHECK(test::read_file(setup.path) == sample());
  CHECK_FALSE(setup.has_part());
  setup.get("good");
  CHECK(setup.server.requests() == Lines{"GET /good/file"});
  test::write_file(setup.path, "something else");
  setup.get("redirect");
  CHECK(test::read_file(setup.path) == sample());
}

TEST_CASE("an interrupted download resumes where it stopped") {
  const Setup setup;
  CHECK_THAT(setup.error_of(setup.options("short")), Contains("with 100000 bytes kept"));
  CHECK(test::read_file(setup.part) == sample().substr(0, 100000));
  setup.get("short");
  CHECK(test::read_file(setup.path) == sample());
  CHECK(setup.server.requests() == Lines{"GET /short/file", "GET /short/file bytes=100000-"});
  CHECK_FALSE(setup.has_part());
}

TEST_CASE("a part file with any content leads to the right file") {
  const Setup setup;
  const std::string whole = sample();
  test::write_file(setup.part, whole.substr(0, 1234));
  setup.get("norange");
  CHECK(test::read_file(setup.path) == whole);
  CHECK(setup.server.requests().size() == 1);
  for (const std::string& content : {whole + "more", "wrong" + whole.substr(5, 700)}) {
    std::filesystem::remove(setup.path);
    test::write_file(setup.part, content);
    setup.get("good");
    CHECK(test::read_file(setup.path) == whole);
    CHECK_FALSE(setup.has_part());
  }
  std::filesystem::remove(setup.path);
  test::write_file(setup.part, whole);
  const size_t before = setup.server.requests().size();
  setup.get("good");
  CHECK(test::read_file(setup.path) == whole);
  CHECK(setup.server.requests().size() == before);
}

TEST_CASE("a wrong hash leaves neither file nor part") {
  const Setup setup;
  DownloadOptions requested = setup.options("good");
  requested.sha256 = std::string(64, 'A');
  CHECK_THAT(setup.error_of(requested),
             Contains("the file has the SHA-256 " + std::string(64, 'a')) &&
                 Contains("Received: " + setup.sha256));
  CHECK_FALSE(setup.has_part());
}

TEST_CASE("a file that is too large is refused, with or without a length") {
  const Setup setup;
  for (const char* behaviour : {"good", "unsized"}) {
    DownloadOptions requested = setup.options(behaviour);
    requested.max_bytes = 199999;
    CHECK_THAT(setup.error_of(requested), Contains("at most 199999 bytes. Received: more"));
    CHECK_FALSE(setup.has_part());
    test::write_file(setup.part, sample().substr(0, 150000));
    CHECK_THAT(setup.error_of(requested), Contains("Received: more"));
    CHECK_FALSE(setup.has_part());
    requested.max_bytes = 200000;
    download(requested);
    std::filesystem::remove(setup.path);
  }
}

TEST_CASE("failures say why in one line") {
  const Setup setup;
  CHECK_THAT(setup.error_of(setup.options("missing")),
             Contains("[" + setup.server.url("missing") + "]") && Contains("HTTP status 404") &&
                 Contains("put the file at " + setup.path));
  CHECK_THAT(setup.error_of(setup.options("downgrade")), Contains("\"http\""));
  CHECK(setup.server.requests().back() == "GET /downgrade/file");
  DownloadOptions requested = setup.options("good");
  requested.ca_file = "";
  CHECK_THAT(setup.error_of(requested), Contains("certificate"));
  requested.url = "https://127.0.0.1:1/file";
  CHECK_THAT(setup.error_of(requested), Contains("connect"));
  requested.url = "https://name.invalid/file";
  CHECK_THAT(setup.error_of(requested), Contains("name.invalid"));
  CHECK_FALSE(setup.has_part());
  requested.path = "/proc/none/file";
  CHECK_THAT(setup.error_of(requested), Contains("the folder can be made"));
}

TEST_CASE("a stalled server is abandoned, and received bytes are kept") {
  const Setup setup;
  const auto start = std::chrono::steady_clock::now();
  CHECK_THAT(setup.error_of(setup.options("stall")), Contains("with 1000 bytes kept"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  setup.get("good");
  CHECK(setup.server.requests().back() == "GET /good/file bytes=1000-");
}

TEST_CASE("addresses and hashes are checked before any request") {
  const Setup setup;
  DownloadOptions requested = setup.options("good");
  requested.sha256.pop_back();
  CHECK_THROWS_AS(download(requested), ConfigError);
  requested.sha256 += 'g';
  CHECK_THROWS_WITH(download(requested), Contains("64 hexadecimal digits"));
  requested = setup.options("good");
  const std::string plain = "http" + requested.url.substr(5);
  for (const std::string& url : {plain, "file://" + setup.path, std::string()}) {
    requested.url = url;
    CHECK_THROWS_AS(download(requested), ConfigError);
    CHECK_THROWS_WITH(download(requested), Contains("https"));
  }
  CHECK(setup.server.requests().empty());
}

TEST_CASE("of two concurrent processes one fetches, and both get the file") {
  const Setup setup;
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      setup.get("slow");
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(test::read_file(setup.path) == sample() ? 0 : 1);
  }
  setup.get("slow");
  CHECK(test::read_file(setup.path) == sample());
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(setup.server.requests().size() == 1);
  CHECK_FALSE(setup.has_part());
}

}  // namespace download_test
