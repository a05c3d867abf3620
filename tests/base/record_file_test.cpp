#include <tessera/framework/base/internal/record_file.hpp>

#include <cerrno>

#include "tests/support/catch.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/files.hpp"

namespace record_file_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a file of records is started anew or appended to") {
  const test::TempFolder folder;
  const std::string path = folder / "log";
  RecordFile file;
  CHECK_FALSE(file.is_open());
  CHECK_FALSE(file.open(folder / "none/log", true));
  CHECK(errno == ENOENT);
  REQUIRE(file.open(path, true));
  CHECK(file.append("one\n"));
  CHECK(test::read_file(path) == "one\n");
  RecordFile next;
  REQUIRE(next.open(path, false));
  CHECK(next.append("two\n"));
  CHECK(test::read_file(path) == "one\ntwo\n");
  REQUIRE(next.open(path, true));
  CHECK(test::read_file(path).empty());
}

TEST_CASE("a partly written record leaves nothing, and later records follow") {
  const test::TempFolder folder;
  const std::string path = folder / "log";
  RecordFile file;
  REQUIRE(file.open(path, true));
  REQUIRE(file.append("one\n"));
  {
    const test::FileSizeLimit limit(6);
    for (int i = 0; i < 3; ++i) {
      errno = 0;
      CHECK_FALSE(file.append("two\n"));
      CHECK(errno == EFBIG);
      CHECK(test::read_file(path) == "one\n");
    }
    CHECK(file.append("2\n"));
  }
  CHECK(file.append("three\n"));
  CHECK(test::read_file(path) == "one\n2\nthree\n");
}

}  // namespace record_file_test
