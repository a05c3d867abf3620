// Compares the programs of apps/examples with the same ones in Keras, by
// tests/golden/keras_examples.json.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace examples_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

const Json& golden() {
  static const Json json = read_json_file(test::golden_path("keras_examples.json"));
  return json;
}

/// Runs an example in a folder, where it may write files.
test::ProgramRun run(const fs::path& folder, const std::string& program,
                     const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"-c", "cd \"$1\" && shift && exec \"$@\"", "sh", folder,
                                 test::app_path(program)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return test::run_program("/bin/sh", words);
}

/// Returns the largest difference of the values of a loss or metric after any epoch: of losses the
/// relative one.
double distance(const std::string& name, const Json& found, const Json& keras) {
  const auto values = found.get<std::vector<double>>();
  const auto expected = keras.get<std::vector<double>>();
  if (values.size() != expected.size()) return 1e9;
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double scale = name.find("loss") == std::string::npos ? 1 : std::abs(expected[i]);
    worst = std::max(worst, std::abs(values[i] - expected[i]) / scale);
  }
  return worst;
}

/// Trains on a mesh and compares losses and metrics with Keras'. Metrics count rows or pixels, so
/// rounding may change them by one of those.
void check_training(const std::string& program, const std::string& mesh) {
  CAPTURE(program, mesh);
  const test::TempFolder folder;
  const test::ProgramRun done =
      run(folder.path(), program, {"--mesh", mesh, "--history", "history.json"});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK(done.err.empty());
  CHECK_THAT(done.out, Contains("epoch 3: ") && Contains("val_loss "));
  const Json history = read_json_file(folder / "history.json").at("history");
  const Json& expected = golden().at(program);
  CHECK(history.size() == expected.size());
  for (const auto& [name, values] : expected.items()) {
    CAPTURE(name);
    REQUIRE(history.contains(name));
    const double bound = name.find("loss") != std::string::npos ? 1e-5 : 1e-4;
    CHECK(distance(name, history.at(name), values) <= bound);
  }
}

void check_on_both_meshes(const std::string& program) {
  for (const char* mesh : {"batch=1", "batch=2"}) check_training(program, mesh);
}

}  // namespace

TEST_CASE("the autoencoder trains like Keras' example on one device and on two") {
  check_on_both_meshes("autoencoder");
}

TEST_CASE("the Siamese network trains like Keras' example on one device and on two") {
  check_on_both_meshes("siamese");
}

TEST_CASE("distillation trains like Keras' example on one device and on two") {
  check_on_both_meshes("distillation");
}

TEST_CASE("the U-Net trains like Keras' example on one device and on two") {
  check_on_both_meshes("unet");
}

TEST_CASE("addition_rnn trains like Keras' example on one device and on two") {
  check_on_both_meshes("addition_rnn");
}

TEST_CASE("a model with a layer of one's own trains like Keras' example on one device and on two") {
  check_on_both_meshes("own_layer");
}

TEST_CASE("a model with a layer of one's own is saved and loaded") {
  const test::TempFolder folder;
  const test::ProgramRun done = run(folder.path(), "own_layer", {"--mesh", "batch=2"});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK(fs::file_size(folder / "own_layer.keras") > 4 * 784 * 64);
  // The loaded model has the validation loss of the last epoch.
  const auto number_after = [&](const std::string& text) {
    const size_t begin = done.out.find(text);
    REQUIRE(begin != std::string::npos);
    return std::stod(done.out.substr(begin + text.size()));
  };
  const double trained = golden().at("own_layer").at("val_loss").back().get<double>();
  CHECK(number_after("loaded: val_loss ") == Approx(trained).epsilon(1e-5));
}

TEST_CASE("examples are short, have a help text and are all compared with Keras") {
  std::set<std::string> programs;
  const test::TempFolder folder;
  for (const auto& entry : fs::directory_iterator(test::tree_path("apps/examples"))) {
    const std::string text = test::read_file(entry.path());
    CAPTURE(entry.path());
    CHECK(std::count(text.begin(), text.end(), '\n') <= 120);
    programs.insert(entry.path().stem());
    const test::ProgramRun help = run(folder.path(), entry.path().stem(), {"--help"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, Contains("--mesh") && Contains("--epochs"));
  }
  std::set<std::string> compared;
  for (const auto& entry : golden().items()) compared.insert(entry.key());
  CHECK(programs == compared);
}

}  // namespace examples_test
