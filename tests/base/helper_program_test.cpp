#include <tessera/framework/base/internal/helper_program.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tessera/framework/base/internal/file_descriptor.hpp>

#include "tests/support/error_line.hpp"

namespace helper_program_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a program's exit status is returned once, and no other process is waited for") {
  const FileDescriptor out = open_descriptor("/dev/null", O_WRONLY);
  HelperProgram program({"/bin/sh", "-c", "exit 3"}, {.output = out.get()}, "install it");
  std::optional<int> status;
  for (int i = 0; i < 3000 && !status; ++i) {
    status = program.poll();
    ::usleep(10000);
  }
  REQUIRE(status.has_value());
  CHECK(WEXITSTATUS(*status) == 3);
  const pid_t other = ::fork();
  if (other == 0) ::_exit(7);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(other), &info, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(program.poll().has_value());
  int ended = 0;
  CHECK(::waitpid(other, &ended, 0) == other);
  CHECK(WEXITSTATUS(ended) == 7);
}

TEST_CASE("a program that the system cannot start is an error") {
  CHECK(find_program("tessera-none").empty());
  const auto start = [] { HelperProgram({"/none/program"}, {.output = 1}, "install it"); };
  CHECK_THAT(test::error_line(start),
             Catch::Contains("[/none/program] the program can be started. Received: No such file"));
}

}  // namespace helper_program_test
