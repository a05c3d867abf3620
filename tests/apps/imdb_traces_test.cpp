#include <algorithm>
#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>

#include "apps/imdb/models.hpp"
#include "apps/imdb/schemes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

namespace imdb_traces_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// The reviews that TensorFlow's figures are of; false where there are none.
bool has_data() {
  const std::string folder = test::real_data_folder();
  if (!folder.empty() && std::filesystem::exists(folder + "/imdb/aclImdb_v1.tar.gz")) return true;
  test::skip("there is no IMDB in $TESSERA_DATA or ../shared/data");
  return false;
}

/// All reviews to train on, vectorized once.
const Dataset& reviews() {
  static const std::shared_ptr<const Dataset> all = [] {
    const auto texts = datasets::imdb({.path = test::real_data_folder() + "/imdb"});
    const TextVectorization vectorize({.max_tokens = 1200, .output_mode = "tf_idf"});
    vectorize.adapt(texts);
    return vectorize.dataset(texts);
  }();
  return *all;
}

const Json& golden() {
  static const Json all = read_json_file(test::golden_path("imdb_dtensor.json").string());
  return all;
}

/// A run that TensorFlow's stable traces are of.
struct Run {
  std::string dtype;
  double learning_rate;
  std::string trace;
  double at_10, at_50;  ///< how far the losses may be off by then
};
const std::vector<Run> runs = {{"float32", 1e-4, "float32_lr_1e_4", 2e-5, 2e-5},
                               {"float64", 1e-2, "float64_lr_1e_2", 2e-5, 2e-4}};

/// The largest |a / b - 1| of the first `count` pairs.
double worst(const std::vector<double>& actual, const std::vector<double>& expected,
             size_t count) {
  REQUIRE(actual.size() >= count);
  REQUIRE(expected.size() >= count);
  double most = 0;
  for (size_t i = 0; i < count; ++i) {
    const double off = std::abs(actual[i] / expected[i] - 1);
    most = std::isnan(off) ? INFINITY : std::max(most, off);
  }
  return most;
}

void check_trace(const std::vector<double>& steps, const Run& run) {
  const auto expected = golden().at("stable").at(run.trace).get<std::vector<double>>();
  CHECK(worst(steps, expected, 10) < run.at_10);
  CHECK(worst(steps, expected, 50) < run.at_50);
}

LayoutMap layouts_of(const imdb::Scheme& scheme) {
  return make_layout_map(scheme.layouts, create_mesh(*scheme.layouts.mesh));
}

/// The losses of the first steps of fit.
std::vector<double> fit_steps(const Run& run, const LayoutMap& layouts, int64_t steps) {
  const test::DTypeScope dtype(run.dtype);
  const ModelHandle model = imdb::sentiment_model();
  model.compile({.optimizer = SGD(run.learning_rate),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  // A handle that does not own: the data outlive the run.
  const std::shared_ptr<const Dataset> data(std::shared_ptr<void>(), &reviews());
  const History history = model.fit(
      data, {.batch_size = 64, .verbose = 0, .shuffle = false, .steps_per_epoch = steps});
  return history.steps;
}

/// The losses that the tutorial's program writes, by phase.
std::vector<std::vector<double>> tutorial_steps(const std::vector<std::string>& arguments) {
  const test::TempFolder folder;
  const std::string file = folder / "history.json";
  std::vector<std::string> words = {"--history", file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const test::ProgramRun run =
      test::run_program(test::app_path("dtensor_tutorial"), words,
                        {{"TESSERA_DATA", test::real_data_folder()}});
  REQUIRE(run.err == "");
  REQUIRE(run.exit_code == 0);
  std::vector<std::vector<double>> phases;
  const Json history = read_json_file(file);
  for (const Json& phase : history.at("phases")) {
    phases.push_back(phase.at("steps").get<std::vector<double>>());
  }
  return phases;
}

std::string number(double value) { return to_json_text(value, -1); }

}  // namespace

TEST_CASE("imdb: layers under fit follow the tutorial's traces by every scheme") {
  if (!has_data()) return;
  for (const Run& run : runs) {
    for (const imdb::Scheme& scheme : imdb::schemes()) {
      CAPTURE(run.trace, scheme.name);
      check_trace(fit_steps(run, layouts_of(scheme), 50), run);
    }
  }
}

TEST_CASE("imdb: on true reviews every scheme trains as one device does, in float64") {
  if (!has_data()) return;
  const Run& run = runs[1];
  const auto one = fit_steps(run, LayoutMap(create_mesh({{"batch", 1}})), 30);
  for (const imdb::Scheme& scheme : imdb::schemes()) {
    CAPTURE(scheme.name);
    CHECK(worst(fit_steps(run, layouts_of(scheme), 30), one, 30) < 1e-9);
  }
}

TEST_CASE("dtensor_tutorial: the loop by hand follows the tutorial's traces by every scheme") {
  if (!has_data()) return;
  for (const Run& run : runs) {
    for (const imdb::Scheme& scheme : imdb::schemes()) {
      CAPTURE(run.trace, scheme.name);
      const auto phases = tutorial_steps(
          {"--schemes", scheme.name, "--dtype", run.dtype, "--learning-rate",
           number(run.learning_rate), "--epochs", "1", "--steps", "50"});
      REQUIRE(phases.size() == 1);
      check_trace(phases[0], run);
    }
  }
}

TEST_CASE("dtensor_tutorial: MLPStricter is the MLP step by step, over one checkpoint folder") {
  if (!has_data()) return;
  const std::vector<std::string> words = {"--dtype", "float64", "--epochs", "1", "--steps", "12"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return tutorial_steps(all);
  };
  const auto mlp = with({}), stricter = with({"--model", "stricter"});
  REQUIRE(mlp.size() == 3);
  REQUIRE(stricter.size() == 3);
  for (size_t phase = 0; phase < 3; ++phase) CHECK(mlp[phase] == stricter[phase]);
  // Every phase sees the same batches; the weights go on from the former.
  CHECK(mlp[0][0] == Approx(5.46779588).epsilon(1e-6));
  CHECK(mlp[1][0] < 0.9 * mlp[0][0]);
  CHECK(mlp[2][0] < 0.9 * mlp[0][0]);
}

}  // namespace imdb_traces_test
