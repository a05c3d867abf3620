#include <cmath>
#include <sstream>
#include <vector>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace distribute_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

std::vector<double> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> list;
  for (double number; in >> number;) list.push_back(number);
  return list;
}

}  // namespace

TEST_CASE("distribute_loop prints the guide's losses under every strategy") {
  const Json golden = read_json_file(golden_path("distribute_guide.json").string());
  const auto expected = golden.at("losses").get<std::vector<double>>();
  const std::vector<std::vector<std::string>> runs = {
      {"--strategy", "default"},
      {"--strategy", "one_device"},
      {"--devices", "2"},
      {"--strategy", "multi_worker_mirrored", "--devices", "3"},
      {"--strategy", "central_storage", "--devices", "2"}};
  for (const auto& arguments : runs) {
    const ProgramRun run = run_program(app_path("distribute_loop"), arguments);
    INFO(arguments.back() << "\n" << run.err);
    CHECK(run.exit_code == 0);
    const std::vector<double> losses = numbers(run.out);
    REQUIRE(losses.size() == expected.size());
    double worst = 0;
    for (size_t i = 0; i < losses.size(); ++i) {
      worst = std::max(worst, std::abs(losses[i] - expected[i]));
    }
    CHECK(worst <= 1e-5);
  }
}

TEST_CASE("distribute_loop with short batches reaches smaller losses") {
  const ProgramRun run =
      run_program(app_path("distribute_loop"), {"--batch-size", "16", "--devices", "4"});
  const std::vector<double> losses = numbers(run.out);
  REQUIRE(losses.size() == 63 + 10);
  for (size_t i = 1; i < losses.size(); ++i) CHECK(losses[i] < losses[i - 1]);
}

TEST_CASE("distribute_fit trains on all replicas") {
  const ProgramRun run = run_program(app_path("distribute_fit"), {"--devices", "2"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("MirroredStrategy: 2 replicas in sync\n"));
  CHECK_THAT(run.out, Contains("Epoch 2/2\n10/10"));
}

TEST_CASE("distribute programs refuse unsupported strategies in one line") {
  for (const char* name : {"distribute_fit", "distribute_loop"}) {
    const ProgramRun tpu = run_program(app_path(name), {"--strategy", "tpu"});
    CHECK(tpu.exit_code == 1);
    CHECK_THAT(tpu.err, Contains(std::string(name) + ": error: [TPUStrategy] devices are CPUs"));
    CHECK(run_program(app_path(name), {"--strategy", "mirored"}).exit_code == 1);
    CHECK(run_program(app_path(name), {"--help"}).exit_code == 0);
  }
}

}  // namespace distribute_test
