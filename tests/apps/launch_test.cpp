#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace launch_test {

namespace {

tessera::test::ProgramRun launch(const std::vector<std::string>& arguments) {
  return tessera::test::run_program(tessera::test::app_path("launch"), arguments);
}

}  // namespace

TEST_CASE("launch starts applications by name, or any program", "[launch]") {
  const auto help = launch({"-n", "1", "--", "mnist", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("[0] Trains a classifier of handwritten digits") == 0);
  const auto shell = launch({"--processes=2", "sh", "-c", "echo $RANK/$WORLD_SIZE; exit $RANK"});
  CHECK(shell.exit_code == 1);
  CHECK(shell.out.find("[1] 1/2\n") != std::string::npos);
  CHECK(shell.err.find("launch: rank 1 failed first: exit code 1, after ") != std::string::npos);
}

TEST_CASE("launch starts the tasks of a parameter server job", "[launch]") {
  const auto run =
      launch({"-n", "2", "--ps", "2", "--evaluator", "--max-restarts=1", "--", "sh", "-c",
              "echo $TF_CONFIG; case $TF_CONFIG$TESSERA_RESTART in "
              "*'\"worker\",\"index\":1}}') exit 5;; "
              "*chief\\\",*) sleep 0.3;; esac"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 7);
  CHECK(run.err.find("launch: worker 1 failed: exit code 5, after ") == 0);
  const auto ranks = launch({"-n", "2", "--tf-config", "sh", "-c", "echo $TF_CONFIG"});
  CHECK(ranks.out.find("\"task\":{\"type\":\"worker\",\"index\":1}") != std::string::npos);
}

TEST_CASE("launch makes processes encrypt if asked to", "[launch]") {
  const std::string show = "echo ${TESSERA_ENCRYPT-unset} ${#TESSERA_SECRET}";
  CHECK(launch({"-n", "1", "--encrypt", "sh", "-c", show}).out == "[0] 1 64\n");
  CHECK(launch({"-n", "1", "sh", "-c", show}).out == "[0] unset 64\n");
}

TEST_CASE("launch restarts as often as the option says", "[launch]") {
  const auto run =
      launch({"-n", "1", "--max-restarts", "2", "--", "sh", "-c", "[ \"$TESSERA_RESTART\" = 2 ]"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.find("launch: restart 2 of 2\n") != std::string::npos);
}

TEST_CASE("a wrong command line gives a one-line error", "[launch]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "launch: error: [-n] must be given."},
      {{"-n", "2"}, "launch: error: [command line] ends with the program to run."},
      {{"-n", "2", "--"}, "launch: error: [command line] ends with the program to run."},
      {{"-n", "0", "--", "sh"}, "launch: error: [-n] must be an integer from 1 to 4096."},
      {{"-n", "2", "--ps", "0", "sh"}, "launch: error: [--ps] must be an integer from 1 to 4096."},
      {{"-n", "2", "--evaluator", "sh"}, "launch: error: [--evaluator] is a task beside"},
      {{"-n", "2", "--evaluater", "sh"},
       "launch: error: [command line] every option must be known. "
       "Received: \"--evaluater\". To fix: write --evaluator."},
      {{"-n", "2", "--encrypted", "sh"},
       "launch: error: [command line] every option must be known. "
       "Received: \"--encrypted\". To fix: write --encrypt."},
      {{"-n"}, "launch: error: [-n] must be an integer"},
      {{"--max-restarts=-1", "sh"}, "launch: error: [--max-restarts] must be an integer from 0"},
      {{"--proceses", "2", "sh"}, "launch: error: [command line] every option must be known."},
      {{"-n", "2", "--", "mnits"}, "launch: error: [launch] the program is a path,"}};
  for (const auto& [arguments, expected] : cases) {
    const auto run = launch(arguments);
    CAPTURE(run.err);
    CHECK(run.exit_code == 1);
    CHECK(run.out.empty());
    CHECK(run.err.rfind(expected, 0) == 0);
    CHECK(run.err.find('\n') == run.err.size() - 1);
  }
}

}  // namespace launch_test
