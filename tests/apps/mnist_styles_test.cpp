#include <algorithm>
#include <cmath>
#include <filesystem>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"

namespace mnist_styles_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;

const Words styles = {"sequential", "functional", "subclass"};

std::string layouts_file(const std::string& name) {
  const auto root = std::filesystem::path(TESSERA_TEST_DIR).parent_path();
  return root / "apps/mnist/layouts" / name;
}

std::vector<double> steps_of(Words words) {
  const test::TempFolder folder;
  const std::string file = folder / "history.json";
  for (const char* word :
       {"--no-shuffle", "--verbose", "0", "--epochs", "1", "--test-size", "1", "--history"}) {
    words.push_back(word);
  }
  words.push_back(file);
  const test::ProgramRun run =
      test::run_program(test::app_path("mnist"), words, {{"TESSERA_DATA", test::digits_folder()}});
  REQUIRE(run.err == "");
  REQUIRE(run.exit_code == 0);
  return read_json_file(file).at("steps").get<std::vector<double>>();
}

void check_close(const std::vector<double>& actual, const std::vector<double>& expected,
                 size_t count, double tolerance) {
  REQUIRE(actual.size() >= count);
  double most = 0;
  for (size_t i = 0; i < count; ++i) most = std::max(most, std::abs(actual[i] / expected[i] - 1));
  CHECK(most < tolerance);
}

}  // namespace

TEST_CASE("the three styles give TensorFlow's trace on any mesh") {
  const size_t count = test::steps_of_digits(20);
  const Json golden = read_json_file(test::golden_path("mnist_core_api.json").string());
  const auto expected = golden.at("runs").at("784-700-10-10").at("step_losses");
  for (const std::string& style : styles) {
    for (const Words& mesh_words :
         {Words{"--mesh", "batch=8"},
          Words{"--mesh", "batch=4,model=2", "--layouts", layouts_file("model.json")},
          Words{"--layouts", layouts_file("feature.json")},
          Words{"--mesh", "batch=8", "--layouts", layouts_file("fsdp.json")}}) {
      CAPTURE(style, mesh_words);
      Words words = {"--style", style,          "--hidden",
                     "700,10",  "--train-size", std::to_string(128 * count)};
      words.insert(words.end(), mesh_words.begin(), mesh_words.end());
      check_close(steps_of(words), expected.get<std::vector<double>>(), count, 5e-5);
    }
  }
}

TEST_CASE("the three styles give Keras' trace") {
  const size_t count = test::steps_of_digits(30);
  const Json golden = read_json_file(test::golden_path("keras_mnist.json").string());
  const auto running = golden.at("running_loss").get<std::vector<double>>();
  for (const std::string& style : styles) {
    CAPTURE(style);
    const std::vector<double> steps = steps_of(
        {"--model", "keras", "--style", style, "--train-size", std::to_string(128 * count)});
    std::vector<double> means;
    double sum = 0;
    for (double loss : steps) {
      sum += loss;
      means.push_back(sum / static_cast<double>(means.size() + 1));
    }
    check_close(means, running, count, 2e-5);
  }
}

TEST_CASE("mnist prints the model and the plan, and draws pictures") {
  const test::TempFolder folder;
  test::write_mnist(folder / "data", 40, 20);
  const std::string curves = folder / "curves.svg", graph = folder / "graph.dot",
                    logs = folder / "logs";
  const test::ProgramRun run =
      test::run_program(test::app_path("mnist"), {"--data-dir",    folder / "data",
                                                  "--train-size",  "all",
                                                  "--test-size",   "all",
                                                  "--hidden",      "6",
                                                  "--epochs",      "2",
                                                  "--batch-size",  "10",
                                                  "--style",       "functional",
                                                  "--mesh",        "batch=2",
                                                  "--summary",     "--plan",
                                                  "--plot",        curves,
                                                  "--plot-model",  graph,
                                                  "--tensorboard", logs});
  CHECK(run.err == "");
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("Model: \"core_api\"") && Contains("┃ Layout"));
  CHECK_THAT(run.out, Contains("A training step on mesh batch=2") && Contains("hidden_1/kernel"));
  CHECK_THAT(test::read_file(curves), Contains("<svg") && Contains("accuracy"));
  CHECK_THAT(test::read_file(graph), Contains("digraph") && Contains("<b>hidden_1</b>"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(logs)) {
    files += entry.is_regular_file();
  }
  CHECK(files == 2);
}

}  // namespace mnist_styles_test
