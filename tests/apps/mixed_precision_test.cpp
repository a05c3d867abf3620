#include <tessera/framework/base/json.hpp>

#include <cmath>
#include <numeric>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace apps_mixed_precision_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

struct Work {
  std::string app;
  std::vector<std::string> arguments;
};

/// The mean of several runs and its squared standard error.
struct Mean {
  double value = 0, variance = 0;
};

double accuracy_of(const Work& work, const std::string& dtype, int seed) {
  const test::TempFolder folder;
  const std::string history = folder / "history.json";
  std::vector<std::string> arguments = work.arguments;
  for (const std::string& argument :
       {std::string("--dtype"), dtype, std::string("--seed"), std::to_string(seed),
        std::string("--history"), history, std::string("--verbose"), std::string("0")}) {
    arguments.push_back(argument);
  }
  const test::ProgramRun run = test::run_program(test::app_path(work.app), arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return read_json_file(history).at("history").at("val_accuracy").back().get<double>();
}

Mean mean_of(const Work& work, const std::string& dtype) {
  constexpr int seeds = 5;
  std::vector<double> all;
  for (int seed = 1; seed <= seeds; ++seed) all.push_back(accuracy_of(work, dtype, seed));
  Mean mean;
  mean.value = std::accumulate(all.begin(), all.end(), 0.0) / seeds;
  for (const double one : all) mean.variance += (one - mean.value) * (one - mean.value);
  mean.variance /= seeds * (seeds - 1);
  return mean;
}

void check_as_accurate(const Work& work, const std::string& dtype, const Mean& expected) {
  const Mean mean = mean_of(work, dtype);
  const double error = std::sqrt(mean.variance + expected.variance);
  std::printf("%s %s, %s: accuracy %.4f, float32 %.4f, standard error of the difference %.4f\n",
              work.app.c_str(), work.arguments.empty() ? "" : work.arguments[1].c_str(),
              dtype.c_str(), mean.value, expected.value, error);
  CHECK(std::abs(mean.value - expected.value) <= 3 * error);
}

void check_as_accurate(const Work& work) {
  const Mean expected = mean_of(work, "float32");
  CHECK(expected.value > 0.7);
  for (const char* dtype : {"mixed_bfloat16", "mixed_float16"}) {
    check_as_accurate(work, dtype, expected);
  }
}

}  // namespace

TEST_CASE("mnist reaches float32's accuracy in mixed precision", "[nightly]") {
  check_as_accurate({"mnist", {"--model", "core-api"}});
  check_as_accurate({"mnist", {"--model", "cnn"}});
}

TEST_CASE("imdb reaches float32's accuracy in mixed precision", "[nightly]") {
  check_as_accurate({"imdb", {"--scheme", "data", "--validation", "--epochs", "6"}});
}

}  // namespace apps_mixed_precision_test
