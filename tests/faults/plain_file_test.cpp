#include <cerrno>
#include <cstring>

#include <tessera/framework/base/internal/file.hpp>

#include "tests/faults/checkpoint_sample.hpp"
#include "tests/faults/io_faults.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace plain_file_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Returns the error text of a write with these faults, or "".
std::string write_error(const std::string& path, const IoFaults& faults,
                        std::vector<IoCall>* calls = nullptr) {
  std::string text;
  start_io_faults(faults);
  try {
    write_file_atomically(path, "new");
  } catch (const FileError& error) {
    text = error.what();
  }
  const std::vector<IoCall> made = stop_io_faults();
  if (calls != nullptr) *calls = made;
  return text;
}

}  // namespace

TEST_CASE("a write with any failing call reports correctly whether the file is old or new") {
  const TempFolder root;
  const std::string path = root / "file";
  std::vector<IoCall> calls;
  REQUIRE(write_error(path, {}, &calls).empty());
  REQUIRE(calls.size() > 6);
  int failed_but_new = 0;
  for (size_t at = 1; at <= calls.size(); ++at) {
    CAPTURE(at, calls[at - 1].name, calls[at - 1].path);
    write_file(path, "old");
    const std::string text = write_error(path, {.at = static_cast<int>(at), .error = EIO});
    const bool says_new = text.find("new file was written") != std::string::npos;
    failed_but_new += says_new;
    CHECK(read_file(path) == (text.empty() || says_new ? "new" : "old"));
    if (!text.empty()) CHECK_THAT(text, Contains("[" + path + "]") && Contains(std::strerror(EIO)));
    CHECK(entries_in(root.path()) == std::vector<std::string>{"file"});
  }
  // These are opening and syncing the folder.
  CHECK(failed_but_new == 2);
}

TEST_CASE("leftovers of a write that crashed before any of its calls are removed by the next") {
  const TempFolder root;
  const std::string path = root / "file";
  std::vector<IoCall> calls;
  REQUIRE(write_error(path, {}, &calls).empty());
  bool with_rest = false;
  for (size_t at = 1; at <= calls.size(); ++at) {
    CAPTURE(at, calls[at - 1].name);
    write_file(path, "old");
    const int code = run_child([&] {
      write_error(path, {.at = static_cast<int>(at), .crash = true});
      return 0;
    });
    REQUIRE(code == crash_exit_code);
    const std::string content = read_file(path);
    CHECK((content == "old" || content == "new"));
    with_rest = with_rest || entries_in(root.path()).size() > 1;
    CHECK(write_error(path, {}).empty());
    CHECK(entries_in(root.path()) == std::vector<std::string>{"file"});
  }
  CHECK(with_rest);
}

}  // namespace plain_file_test
