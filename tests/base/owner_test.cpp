#include <tessera/framework/base/internal/owner.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"

namespace owner_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

namespace fs = std::filesystem;

void make_older(const fs::path& path, std::chrono::hours age) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - age);
}

}  // namespace

TEST_CASE("the host name is the system's") {
  std::array<char, 256> name{};
  REQUIRE(::gethostname(name.data(), name.size()) == 0);
  CHECK(host_name() == name.data());
}

TEST_CASE("an owner number identifies its process and is unique") {
  const std::string number = own_number();
  CHECK(number != own_number());
  REQUIRE(owner_of(number).has_value());
  CHECK(owner_of(number) == this_process());
  CHECK(owner_of(number)->pid == ::getpid());
  CHECK(owner_of(number)->start > 0);
  CHECK(owner_of(test::elsewhere_number())->machine == "0123456789abcdef");
  for (const char* other :
       {"", "4711", "12-3", "0123456789abcdef-1-2", "0123456789abcdef-1-2-x",
        "0123456789abcdeF-1-2-3", "0123456789abcde-1-2-3", "0123456789abcdef-1-2-3-4",
        "0123456789abcdef-1--3", "0123456789abcdef-99999999999999999999-2-3"}) {
    CAPTURE(other);
    CHECK_FALSE(owner_of(other).has_value());
  }
}

TEST_CASE("temporary names are recognized, also those of an earlier version") {
  const std::optional<TemporaryName> own = temporary_name(new_temporary_name());
  REQUIRE(own.has_value());
  CHECK(own->owner == this_process());
  REQUIRE(temporary_name(".tessera-12-3.tmp").has_value());
  CHECK_FALSE(temporary_name(".tessera-12-3.tmp")->owner.has_value());
  for (const char* other :
       {".tessera-.tmp", ".tessera-1.tmp", ".tessera-1-x.tmp", "tessera-1-2.tmp",
        ".tessera-1-2.tmp2", ".tessera-tmp", ".tessera-claim-1-2.tmp"}) {
    CAPTURE(other);
    CHECK_FALSE(temporary_name(other).has_value());
  }
}

TEST_CASE("a process has ended when it is gone, a zombie, or another one has its id") {
  CHECK_FALSE(has_ended(this_process()));
  CHECK(has_ended(*owner_of(test::ended_number())));
  CHECK_FALSE(has_ended(*owner_of(test::elsewhere_number())));
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string number = own_number();
    const bool told = ::write(pipe[1], number.data(), number.size()) > 0;
    ::pause();
    ::_exit(told);
  }
  std::array<char, 256> text{};
  const ssize_t size = ::read(pipe[0], text.data(), text.size());
  REQUIRE(size > 0);
  const std::optional<Owner> owner = owner_of(std::string(text.data(), static_cast<size_t>(size)));
  REQUIRE(owner.has_value());
  CHECK(owner->pid == child);
  CHECK_FALSE(has_ended(*owner));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(has_ended(*owner));
  ::waitpid(child, nullptr, 0);
  CHECK(has_ended(*owner));
  for (const int end : pipe) ::close(end);
}

TEST_CASE("another machine's files are abandoned after a day without changes") {
  const test::TempFolder root;
  const fs::path folder = root / "a";
  fs::create_directory(folder);
  test::write_file(folder / "one", "1");
  for (const std::optional<Owner>& owner : {owner_of(test::elsewhere_number()), {}}) {
    make_older(folder / "one", std::chrono::hours(25));
    make_older(folder, std::chrono::hours(25));
    CHECK(is_abandoned(folder.string(), owner));
    CHECK(is_abandoned((folder / "one").string(), owner));
    make_older(folder / "one", std::chrono::hours(23));
    CHECK_FALSE(is_abandoned(folder.string(), owner));
    make_older(folder / "one", std::chrono::hours(25));
    make_older(folder, std::chrono::hours(-1));
    CHECK_FALSE(is_abandoned(folder.string(), owner));
  }
  make_older(folder, std::chrono::hours(25));
  CHECK_FALSE(is_abandoned(folder.string(), this_process()));
  CHECK(is_abandoned((root / "none").string(), owner_of(test::ended_number())));
  CHECK_FALSE(is_abandoned((root / "none").string(), owner_of(test::elsewhere_number())));
}

}  // namespace owner_test
