#include "tests/support/program.hpp"

#include <stdexcept>

#include "tests/support/catch.hpp"

namespace program_test {

using namespace tessera;

TEST_CASE("a program's arguments, environment, output and exit code are passed") {
  const test::ProgramRun run = test::run_program(
      "/bin/sh", {"-c", "echo \"$1 $WORD\"; echo oops >&2; exit 3", "sh", "a b"}, {{"WORD", "c"}});
  CHECK(run.exit_code == 3);
  CHECK(run.out == "a b c\n");
  CHECK(run.err == "oops\n");
  CHECK(test::run_program("/bin/sh", {"-c", "kill -9 $$"}).exit_code == 137);
  CHECK_THROWS_AS(test::run_program("/nowhere/program", {}), std::runtime_error);
}

}  // namespace program_test
