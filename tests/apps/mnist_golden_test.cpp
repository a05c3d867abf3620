#include <algorithm>
#include <cmath>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

namespace mnist_golden_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Words = std::vector<std::string>;

/// A mesh (empty: the layouts file's own) and a layouts file or none.
struct MeshChoice {
  std::string mesh;
  std::string layouts;
};

const std::vector<MeshChoice> mesh_choices = {
    {"batch=1", ""},
    {"batch=8", ""},
    {"batch=3", ""},
    {"batch=4,model=2", "model.json"},
    {"batch=2,model=4", "model.json"},
    {"model=8", "model.json"},
    {"", "feature.json"},
    {"batch=8", "fsdp.json"},
};

Words arguments_for(const MeshChoice& choice) {
  Words words;
  if (!choice.mesh.empty()) words.insert(words.end(), {"--mesh", choice.mesh});
  if (!choice.layouts.empty()) {
    const auto root = std::filesystem::path(TESSERA_TEST_DIR).parent_path();
    words.insert(words.end(), {"--layouts", root / "apps/mnist/layouts" / choice.layouts});
  }
  return words;
}

bool has_data() {
  if (!test::real_data_folder().empty()) return true;
  test::skip("there is no MNIST in $TESSERA_DATA or ../shared/data");
  return false;
}

/// Returns arguments for one epoch of `count` batches of the first images.
Words batches(size_t count) {
  return {"--train-size", std::to_string(128 * count), "--test-size", "1", "--epochs", "1"};
}

/// Returns the history that mnist writes for these arguments on the real data, without shuffling.
Json history_of(const Words& arguments, const std::string& policy = "per_worker") {
  const test::TempFolder folder;
  const std::string file = folder / "history.json";
  Words words = {"--no-shuffle", "--verbose", "0", "--history", file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const test::ProgramRun run =
      test::run_program(test::app_path("mnist"), words,
                        {{"TESSERA_DATA", test::digits_folder()}, {"TESSERA_BLOCKS", policy}});
  REQUIRE(run.err == "");
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == "");
  Json history = read_json_file(file);
  CHECK(history.at("data") == "mnist");
  return history;
}

/// Returns the largest |a / b - 1| of the first `count` pairs.
double worst(const std::vector<double>& actual, const std::vector<double>& expected, size_t count) {
  REQUIRE(actual.size() >= count);
  REQUIRE(expected.size() >= count);
  double most = 0;
  for (size_t i = 0; i < count; ++i) most = std::max(most, std::abs(actual[i] / expected[i] - 1));
  return most;
}

std::vector<double> numbers(const Json& json) { return json.get<std::vector<double>>(); }

Json core_api(const std::string& hidden) {
  const Json golden = read_json_file(test::golden_path("mnist_core_api.json").string());
  const std::string units = hidden == "700,500" ? "700-500" : "700-10";
  return golden.at("runs").at("784-" + units + "-10");
}

/// Returns the running means of the steps' losses.
std::vector<double> running_means(const std::vector<double>& steps) {
  std::vector<double> means;
  double sum = 0;
  for (double loss : steps) {
    sum += loss;
    means.push_back(sum / static_cast<double>(means.size() + 1));
  }
  return means;
}

}  // namespace

TEST_CASE("core-api: 20 steps equal TensorFlow's on every mesh, under every block policy") {
  const size_t count = test::steps_of_digits(20);
  for (const std::string hidden : {"700,500", "700,10"}) {
    const std::vector<double> expected = numbers(core_api(hidden).at("step_losses"));
    for (const std::string policy : {"per_device", "per_shard", "per_worker"}) {
      for (const MeshChoice& choice : mesh_choices) {
        CAPTURE(hidden, policy, choice.mesh, choice.layouts);
        Words words = batches(count);
        words.insert(words.end(), {"--hidden", hidden});
        const Words where = arguments_for(choice);
        words.insert(words.end(), where.begin(), where.end());
        const std::vector<double> steps = numbers(history_of(words, policy).at("steps"));
        CHECK(steps.size() == count);
        CHECK(worst(steps, expected, count) < 5e-5);
      }
    }
  }
}

TEST_CASE("core-api: three epochs equal TensorFlow's") {
  if (!has_data()) return;
  const std::vector<std::pair<std::string, MeshChoice>> runs = {{"700,500", mesh_choices[1]},
                                                                {"700,500", mesh_choices[3]},
                                                                {"700,500", mesh_choices[7]},
                                                                {"700,10", mesh_choices[6]}};
  for (const auto& [hidden, choice] : runs) {
    CAPTURE(hidden, choice.mesh, choice.layouts);
    Words words = {"--hidden", hidden, "--epochs", "3"};
    const Words where = arguments_for(choice);
    words.insert(words.end(), where.begin(), where.end());
    const Json history = history_of(words);
    const Json expected = core_api(hidden);
    const std::vector<double> steps = numbers(history.at("steps"));
    CHECK(steps.size() == 120);
    CHECK(worst(steps, numbers(expected.at("step_losses")), 20) < 5e-5);
    for (const std::string name : {"loss", "accuracy", "val_loss", "val_accuracy"}) {
      CAPTURE(name);
      std::vector<double> course;
      for (const Json& epoch : expected.at("epochs")) {
        course.push_back(epoch.at("row_weighted").at(name));
      }
      CHECK(worst(numbers(history.at("history").at(name)), course, 3) < 0.01);
    }
  }
}

TEST_CASE("keras: three epochs of all of MNIST equal Keras'") {
  if (!has_data()) return;
  const Json history =
      history_of({"--model", "keras", "--train-size", "all", "--test-size", "all"});
  const Json expected = read_json_file(test::golden_path("keras_mnist.json").string());
  const std::vector<double> means = running_means(numbers(history.at("steps")));
  const std::vector<double> running = numbers(expected.at("running_loss"));
  CHECK(means.size() == 3 * 469);
  CHECK(worst(means, running, 30) < 2e-5);
  CHECK(worst(means, running, 60) < 5e-4);
  const std::vector<double> loss = numbers(history.at("history").at("loss"));
  const std::vector<double> accuracy = numbers(history.at("history").at("val_accuracy"));
  const Json& course = expected.at("history");
  REQUIRE(loss.size() == 3);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    CAPTURE(epoch);
    CHECK(loss[epoch] == Approx(course.at("loss")[epoch].get<double>())
                             .epsilon(std::vector<double>{0.02, 0.04, 0.08}[epoch]));
    const double expected_accuracy = course.at("val_accuracy")[epoch];
    CHECK(std::abs(accuracy[epoch] - expected_accuracy) < 0.03);
  }
}

}  // namespace mnist_golden_test
