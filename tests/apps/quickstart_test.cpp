#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace quickstart_test {

using namespace tessera;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

TEST_CASE("quickstart trains, evaluates and saves") {
  const test::TempFolder folder;
  const test::ProgramRun run = test::run_program(
      "/bin/sh",
      {"-c", "cd \"$1\" && exec \"$2\"", "sh", folder.path(), test::app_path("quickstart")},
      {{"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder.path()}});
  // Without the files it says what it uses instead, for each split.
  CHECK_THAT(run.err, Matches("(Warning: mnist \\(synthetic\\): 5000 procedural [^\n]*\n){2}"));
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("hidden (Dense)") && Contains("Mesh: batch=4, model=2"));
  CHECK_THAT(run.out, Contains("Epoch 3/3") && Contains("val_accuracy"));
  CHECK_THAT(run.out, Matches("[^]*\ntest accuracy: 0\\.[89]\\d+\ntest loss: 0\\.\\d+\n"));
  CHECK(std::filesystem::file_size(folder / "digits.safetensors") > 784 * 700 * 4);
}

TEST_CASE("quickstart refuses arguments and says what it does") {
  const test::ProgramRun wrong = test::run_program(test::app_path("quickstart"), {"--epoch", "1"});
  CHECK(wrong.exit_code == 1);
  CHECK_THAT(wrong.err, Contains("quickstart: error: [command line] every option must be known"));
  const test::ProgramRun help = test::run_program(test::app_path("quickstart"), {"--help"});
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out, Contains("eight virtual devices") && !Contains("Epoch"));
}

}  // namespace quickstart_test
