#include <tessera/framework/io/format/directory_claim.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"

namespace directory_claim_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds moment(50);

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

/// Writes the claim file of process `number` on the machine `host`.
fs::path plant(const fs::path& folder, const std::string& number, const std::string& host) {
  const fs::path path = folder / (".tessera-claim-" + number);
  test::write_file(path, host);
  return path;
}

}  // namespace

TEST_CASE("a directory is claimed by one process at a time, until that process ends") {
  const test::TempFolder root;
  const std::string directory = root / "runs/one";
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto claim = claim_directory(directory);
    const bool told = ::write(pipe[1], claim ? "y" : "n", 1) == 1;
    ::pause();
    ::_exit(told);
  }
  char answer = 0;
  REQUIRE(::read(pipe[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  CHECK_THROWS_WITH(claim_directory(directory, {.acquire_timeout = std::chrono::milliseconds(50)}),
                    Contains(directory) && Contains("another process"));
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(child, SIGKILL);
  });
  const auto claim = claim_directory(directory, {.acquire_timeout = std::chrono::seconds(20)});
  killer.join();
  ::waitpid(child, nullptr, 0);
  for (const int end : pipe) ::close(end);
  CHECK(claim != nullptr);
  CHECK(claim_directory(directory) == claim);
  fs::remove_all(directory);
  // Another folder of the same name is another directory.
  CHECK(claim_directory(directory) != claim);
  test::write_file(root / "file", "");
  CHECK(claim_directory(root / "file/run") == nullptr);
}

TEST_CASE("a claim is a file that is renewed while the claim is valid and removed after it") {
  const test::TempFolder root;
  const std::string directory = root / "run";
  {
    const auto claim =
        claim_directory(directory, {.heartbeat_interval = std::chrono::milliseconds(5)});
    REQUIRE(claim != nullptr);
    CHECK(claim->is_valid());
    const std::vector<std::string> names = names_in(directory);
    REQUIRE(names.size() == 1);
    CHECK(names[0].starts_with(".tessera-claim-"));
    const fs::path file = fs::path(directory) / names[0];
    CHECK(test::read_file(file) == host_name());
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
    const auto old = fs::last_write_time(file);
    while (fs::last_write_time(file) == old) std::this_thread::sleep_for(moment / 10);
    // Does what a process of another machine does that takes the directory over.
    fs::remove(file);
    CHECK_FALSE(claim->is_valid());
    CHECK(claim_directory(directory) == claim);
    CHECK(claim->is_valid());
    CHECK(names_in(directory) != names);
    claim->end();
    CHECK_FALSE(claim->is_valid());
    CHECK(names_in(directory).empty());
    CHECK(claim_directory(directory) == claim);
  }
  CHECK(names_in(directory).empty());
}

TEST_CASE("a claim of another machine holds while it is renewed") {
  const test::TempFolder root;
  const std::string number = test::elsewhere_number();
  const fs::path file = plant(root.path(), number, "node3");
  std::atomic<bool> ends{false};
  std::thread beating([&] {
    while (!ends) {
      ::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);
      std::this_thread::sleep_for(moment / 5);
    }
  });
  CHECK_THROWS_WITH(
      claim_directory(root.path(),
                      {.acquire_timeout = moment, .heartbeat_timeout = std::chrono::seconds(60)}),
      Contains("one run at a time") && Contains("another process that does, 4711 on node3"));
  ends = true;
  beating.join();
  CHECK(names_in(root.path()) == std::vector<std::string>{file.filename()});
}

TEST_CASE("another machine's claim that is not renewed is void, and its leftovers are removed") {
  const test::TempFolder root;
  const fs::path file = plant(root.path(), test::elsewhere_number(), "node3");
  const fs::path its = root / ("tmp.step-000001." + test::elsewhere_number(5));
  const fs::path other = root / ("tmp.step-000001.fedcba9876543210-1-2-3");
  for (const fs::path& folder : {its, other}) {
    fs::create_directory(folder);
    test::write_file(folder / "shard-00000.safetensors", "");
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto claim = claim_directory(root.path(), {.heartbeat_timeout = 4 * moment});
  CHECK(std::chrono::steady_clock::now() - begin > 4 * moment);
  CHECK(claim->is_valid());
  CHECK_FALSE(fs::exists(file));
  CHECK_FALSE(fs::exists(its));
  CHECK(fs::exists(other));
}

TEST_CASE("a claim of a process of this machine that has ended is void at once") {
  const test::TempFolder root;
  const fs::path file = plant(root.path(), test::ended_number(), host_name());
  const auto claim = claim_directory(root.path());
  CHECK(claim->is_valid());
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("files that are no claims do not prevent a claim") {
  const test::TempFolder root;
  for (const char* name : {".tessera-claim-", ".tessera-claim-x", ".tessera-12-3.tmp", "claim"}) {
    test::write_file(root / name, "mine");
  }
  CHECK(claim_directory(root.path())->is_valid());
  CHECK(names_in(root.path()).size() == 4);
}

}  // namespace directory_claim_test
