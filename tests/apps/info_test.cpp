#include <cstddef>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/version.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace info_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("info names versions, options and devices") {
  const test::ProgramRun run = test::run_program(test::app_path("info"), {});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, StartsWith("Tessera        " + version() + ", "));
  CHECK_THAT(run.out, Contains("\nlibtorch       2.") && Contains("/lib/\n"));
  CHECK_THAT(run.out, Contains("glibc 2.") && Contains("\nGPU driver     "));
  const test::ProgramRun machine = test::run_program(test::app_path("info"), {"--json"});
  const Json report = Json::parse(machine.out);
  CHECK(report.at("Tessera") == version() + ", " + build_description());
  // Each option is in one of the two lists.
  const std::string options = " " + report.at("built with").get<std::string>() + " " +
                              report.at("built without").get<std::string>() + " ";
  for (const auto& [name, on] : build_options()) {
    CHECK_THAT(options, Contains(" " + name + " "));
  }
  // A wrong line would be found by its name alone.
  for (const char* name : {"HDF5 files", "system", "processors", "GPU driver", "NCCL"}) {
    CHECK_FALSE(report.at(name).get<std::string>().empty());
  }
}

TEST_CASE("every program says its version and refuses unknown arguments") {
  // Those with a parser of their own, those with the common one, and those that take nothing.
  const std::vector<std::string> programs = {
      "launch", "imdb",  "gpt",        "mnist", "convert",    "serve",           "custom_loop",
      "unet",   "bench", "timeseries", "info",  "quickstart", "dtensor_tutorial"};
  for (const std::string& program : programs) {
    CAPTURE(program);
    const test::ProgramRun run = test::run_program(test::app_path(program), {"--version"});
    CHECK(run.exit_code == 0);
    CHECK(run.out == program + " (Tessera) " + version() + "\n");
    const test::ProgramRun wrong = test::run_program(test::app_path(program), {"--epochz"});
    CHECK(wrong.exit_code == 1);
    CHECK_THAT(wrong.err, StartsWith(program + ": error: "));
  }
  for (const char* program : {"tessera-check-export", "tessera-hdf5"}) {
    const test::ProgramRun run = test::run_program(test::app_path(program), {"--version"});
    CHECK(run.exit_code == 0);
    CHECK(run.out == std::string(program) + " (Tessera) " + version() + "\n");
  }
}

TEST_CASE("the version may be asked for after other options") {
  const test::ProgramRun run =
      test::run_program(test::app_path("mnist"), {"--epochs", "1", "--version"});
  CHECK(run.exit_code == 0);
  CHECK(run.out == "mnist (Tessera) " + version() + "\n");
}

}  // namespace info_test
