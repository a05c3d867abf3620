#include <tessera/framework/io/format/versioned_directory.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"

namespace versioned_directory_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

int64_t commit_one(const std::string& root, const std::string& text = "text") {
  NewVersion version(root);
  test::write_file(version.file("one.txt"), text);
  return version.commit({{"kind", "test"}});
}

/// Starts a version in a process that is killed before the version is complete.
void begin_and_die(const std::string& root) {
  const pid_t child = ::fork();
  if (child == 0) {
    NewVersion version(root);
    test::write_file(version.file("one.txt"), "half");
    test::write_file(fs::path(version.file("two.txt")).parent_path() / ".tessera-12-3.tmp", "half");
    ::_exit(0);
  }
  REQUIRE(child > 0);
  ::waitpid(child, nullptr, 0);
}

int hidden_in(const std::string& root) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    count += entry.path().filename().string().starts_with(".");
  }
  return count;
}

}  // namespace

TEST_CASE("a version is read back with its checksums verified") {
  const test::TempFolder folder;
  const std::string large((size_t{1} << 17) + 5, 'x');
  CHECK(commit_one(folder / "v", large) == 1);
  const VersionManifest version = read_version(folder / "v/000001");
  CHECK(version.manifest == Json{{"kind", "test"}});
  CHECK(version.files == std::vector<std::string>{"one.txt"});
  std::string other = large;
  other.back() = 'y';
  test::write_file(folder / "v/000001/one.txt", other);
  CHECK_THROWS_WITH(read_version(folder / "v/000001"), Contains("checksum"));
}

TEST_CASE("a killed process's leftovers of a version are removed by the next version") {
  const test::TempFolder folder;
  const std::string root = folder / "v";
  begin_and_die(root);
  REQUIRE(hidden_in(root) == 1);
  CHECK(commit_one(root) == 1);
  CHECK(hidden_in(root) == 0);
}

TEST_CASE("only leftovers of versions are removed") {
  const test::TempFolder folder;
  const std::string root = folder / "v";
  fs::create_directories(root);
  const auto ended = [](int count) { return "/.tessera-" + test::ended_number(count) + ".tmp"; };
  const std::string elsewhere = "/.tessera-" + test::elsewhere_number() + ".tmp";
  const std::string earlier = "/.tessera-1-2.tmp";
  test::write_file(root + ended(1), "a file that somebody writes");
  for (const std::string& name : {ended(2), elsewhere, earlier, std::string("/.tessera-1-x.tmp"),
                                  std::string("/.tessera-1.tmp"), std::string("/.other")}) {
    fs::create_directory(root + name);
  }
  for (const std::string& name : {ended(3) + "/notes", ended(4) + "/.hidden"}) {
    fs::create_directories(root + name);
  }
  test::write_file(root + ended(4) + "/one.txt", "stays with the others");
  NewVersion alive(root);
  test::write_file(alive.file("one.txt"), "text");
  CHECK(commit_one(root) == 1);
  CHECK_FALSE(exists(root + ended(2)));
  for (const std::string& name :
       {ended(1), elsewhere, earlier, std::string("/.tessera-1-x.tmp"),
        std::string("/.tessera-1.tmp"), std::string("/.other"), ended(3) + "/notes",
        ended(4) + "/.hidden", ended(4) + "/one.txt"}) {
    CAPTURE(name);
    CHECK(exists(root + name));
  }
  CHECK(alive.commit(Json::object()) == 2);
  // Folders of unknown owners count as leftovers after a day.
  for (const std::string& name : {elsewhere, earlier}) {
    fs::last_write_time(root + name, fs::file_time_type::clock::now() - std::chrono::hours(25));
  }
  CHECK(commit_one(root) == 3);
  CHECK_FALSE(exists(root + elsewhere));
  CHECK_FALSE(exists(root + earlier));
}

TEST_CASE("a version that was mistaken for a leftover is not committed") {
  const test::TempFolder folder;
  const std::string root = folder / "v";
  std::optional<NewVersion> version(std::in_place, root);
  const std::string file = version->file("one.txt");
  test::write_file(file, "text");
  // Renames the folder like remove_unfinished().
  fs::rename(fs::path(file).parent_path(), root + "/" + new_temporary_name());
  CHECK_THROWS_AS(version->commit(Json::object()), FileError);
  CHECK(list_versions(root).empty());
}

TEST_CASE("a file or link named like a version is no obstacle") {
  const test::TempFolder folder;
  const std::string root = folder / "v";
  CHECK(commit_one(root) == 1);
  test::write_file(root + "/000002", "mine");
  CHECK(commit_one(root) == 3);
  fs::create_symlink("nowhere", root + "/4");
  CHECK(commit_one(root) == 5);
  CHECK(list_versions(root) == std::vector<int64_t>{1, 3, 5});
  CHECK(test::read_file(root + "/000002") == "mine");
}

TEST_CASE("if no higher number is left, a version is refused") {
  for (const char* name : {"9223372036854775807", "999999999999999999"}) {
    const test::TempFolder folder;
    const std::string root = folder / "v";
    fs::create_directories(root + "/" + name);
    CHECK_THROWS_AS(commit_one(root), FileError);
    CHECK_THROWS_WITH(commit_one(root), Contains("below 10^18") && Contains(name));
    CHECK(hidden_in(root) == 0);
  }
}

}  // namespace versioned_directory_test
