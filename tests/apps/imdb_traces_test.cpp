#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/datasets/files/idx.hpp>

#include "apps/imdb/models.hpp"
#include "apps/imdb/schemes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

namespace imdb_traces_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns whether this machine has the reviews that TensorFlow's results were computed from.
bool has_reviews() {
  const std::string folder = test::real_data_folder();
  return !folder.empty() && std::filesystem::exists(folder + "/imdb/aclImdb_v1.tar.gz");
}

/// Returns how many of a trace's first steps true_reviews() has data for.
size_t steps_of_reviews(size_t steps) {
  return has_reviews() ? steps : std::min<size_t>(steps, 10);
}

std::shared_ptr<const Dataset> vectorized(const ImdbOptions& options) {
  const auto texts = datasets::imdb(options);
  const TextVectorization vectorize({.max_tokens = 1200, .output_mode = "tf_idf"});
  vectorize.adapt(texts);
  return vectorize.dataset(texts);
}

at::Tensor excerpt(const std::string& name) {
  IdxArray array = read_idx(test::golden_path("excerpts/" + name));
  return at::from_blob(array.data.data(), array.shape, at::kByte).to(at::kLong);
}

/// Returns the first rows of the real reviews, from the counts that tests/golden/make_excerpts.py
/// writes.
TensorDataset first_reviews() {
  const at::Tensor bytes = excerpt("imdb-counts-idx3-ubyte.gz");
  const at::Tensor counts = bytes.select(2, 0) * 256 + bytes.select(2, 1);
  const Json idf = read_json_file(test::golden_path("imdb_text.json").string()).at("idf");
  return TensorDataset(counts * at::tensor(idf.get<std::vector<float>>()),
                       excerpt("imdb-labels-idx1-ubyte.gz"));
}

/// Returns the real reviews to train on or, if this machine does not have them, the excerpt of the
/// first.
const Dataset& true_reviews() {
  static const std::shared_ptr<const Dataset> all = []() -> std::shared_ptr<const Dataset> {
    if (!has_reviews()) return std::make_shared<TensorDataset>(first_reviews());
    return vectorized({.path = test::real_data_folder() + "/imdb"});
  }();
  return *all;
}

/// Returns what the tutorial's program trains on here: the real reviews, or procedural ones.
const Dataset& program_reviews() {
  static const std::shared_ptr<const Dataset> procedural = [] {
    if (has_reviews()) return std::shared_ptr<const Dataset>();
    const test::NoData nowhere;
    return vectorized({.synthetic = true});
  }();
  return procedural ? *procedural : true_reviews();
}

const Json& golden() {
  static const Json all = read_json_file(test::golden_path("imdb_dtensor.json").string());
  return all;
}

/// A run of which TensorFlow's stable traces exist.
struct Run {
  std::string dtype;
  double learning_rate;
  std::string trace;
  double at_10, at_50;  ///< largest allowed difference of the losses by that step
};
const std::vector<Run> runs = {{"float32", 1e-4, "float32_lr_1e_4", 2e-5, 2e-5},
                               {"float64", 1e-2, "float64_lr_1e_2", 2e-5, 2e-4}};

/// Returns the largest |a / b - 1| of the first `count` pairs.
double worst(const std::vector<double>& actual, const std::vector<double>& expected, size_t count) {
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
  const size_t count = steps_of_reviews(50);
  CHECK(worst(steps, expected, count) < run.at_50);
}

LayoutMap layouts_of(const imdb::Scheme& scheme) {
  return make_layout_map(scheme.layouts, create_mesh(*scheme.layouts.mesh));
}

/// Returns the losses of fit's first steps.
std::vector<double> fit_steps(const Run& run, const LayoutMap& layouts, size_t steps,
                              const Dataset& reviews = true_reviews()) {
  const test::DTypeScope dtype(run.dtype);
  const ModelHandle model = imdb::sentiment_model();
  model.compile({.optimizer = SGD(run.learning_rate),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  // A non-owning handle: the data outlives the run.
  const std::shared_ptr<const Dataset> data(std::shared_ptr<void>(), &reviews);
  const History history = model.fit(data, {.batch_size = 64,
                                           .verbose = 0,
                                           .shuffle = false,
                                           .steps_per_epoch = static_cast<int64_t>(steps)});
  return history.steps;
}

/// Returns the losses that the tutorial's program writes, by phase.
std::vector<std::vector<double>> tutorial_steps(const std::vector<std::string>& arguments) {
  const test::TempFolder folder;
  const std::string file = folder / "history.json";
  std::vector<std::string> words = {"--history", file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const test::ProgramRun run =
      test::run_program(test::app_path("dtensor_tutorial"), words,
                        {{"TESSERA_DATA", has_reviews() ? test::real_data_folder() : ""},
                         {"XDG_CACHE_HOME", folder.path()},
                         {"TESSERA_OFFLINE", "1"}});
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

TEST_CASE("imdb: the excerpt holds the first of the real reviews") {
  if (!has_reviews()) return test::skip("there is no IMDB in $TESSERA_DATA or ../shared/data");
  std::vector<int64_t> rows(640);
  std::iota(rows.begin(), rows.end(), 0);
  const Examples excerpt = first_reviews().get(rows), real = true_reviews().get(rows);
  CHECK(test::difference(excerpt.x[0], real.x[0], 1e-6) == "");
  CHECK(test::difference(excerpt.y[0], real.y[0]) == "");
}

TEST_CASE("imdb: fit follows the tutorial's traces under every scheme") {
  for (const Run& run : runs) {
    for (const imdb::Scheme& scheme : imdb::schemes()) {
      CAPTURE(run.trace, scheme.name);
      check_trace(fit_steps(run, layouts_of(scheme), steps_of_reviews(50)), run);
    }
  }
}

TEST_CASE("imdb: on real reviews every scheme trains like one device in float64") {
  const Run& run = runs[1];
  const size_t steps = steps_of_reviews(30);
  const auto one = fit_steps(run, LayoutMap(create_mesh({{"batch", 1}})), steps);
  for (const imdb::Scheme& scheme : imdb::schemes()) {
    CAPTURE(scheme.name);
    CHECK(worst(fit_steps(run, layouts_of(scheme), steps), one, steps) < 1e-9);
  }
}

TEST_CASE("dtensor_tutorial: the custom loop equals fit and the traces under every scheme") {
  const size_t steps = steps_of_reviews(50);
  for (const Run& run : runs) {
    for (const imdb::Scheme& scheme : imdb::schemes()) {
      CAPTURE(run.trace, scheme.name);
      const auto phases = tutorial_steps({"--schemes", scheme.name, "--dtype", run.dtype,
                                          "--learning-rate", number(run.learning_rate), "--epochs",
                                          "1", "--steps", std::to_string(steps)});
      REQUIRE(phases.size() == 1);
      const auto fitted = fit_steps(run, layouts_of(scheme), steps, program_reviews());
      CHECK(worst(phases[0], fitted, 10) < run.at_10);
      if (has_reviews()) check_trace(phases[0], run);
    }
  }
}

TEST_CASE("dtensor_tutorial: MLPStricter equals MLP at every step, sharing checkpoints") {
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
  // Every phase sees the same batches and continues from the previous phase's weights.
  CHECK(mlp[1][0] < 0.9 * mlp[0][0]);
  CHECK(mlp[2][0] < 0.9 * mlp[0][0]);
  if (has_reviews()) CHECK(mlp[0][0] == Approx(5.46779588).epsilon(1e-6));
}

}  // namespace imdb_traces_test
