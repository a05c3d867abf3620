// Continues training models that Keras saved, and saves them for check_training.py, where Keras
// continues training.
#include <cstdlib>
#include <filesystem>
#include <set>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_training.hpp"
#include "tests/support/skip.hpp"

namespace training_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns whether a model was saved before its first step, without optimizer variables.
bool is_untrained(const std::string& name) { return name.starts_with("untrained"); }

}  // namespace

TEST_CASE("models trained in Keras and here are saved for Keras") {
  const char* const cases = std::getenv("TESSERA_KERAS_CASES");
  if (!cases) return test::skip("TESSERA_KERAS_CASES names no folder to save models in");
  const std::filesystem::path folder = std::filesystem::path(cases) / "training";
  std::filesystem::create_directories(folder);
  Json losses = Json::object();
  for (const Json& each : test::keras_training().at("cases")) {
    const auto name = each.at("name").get<std::string>();
    CAPTURE(name);
    const test::TempFolder archives;
    const Examples data = test::data_of(each);
    const ModelHandle model = load_model(test::archive_of(archives, name));
    if (!is_untrained(name)) test::losses_of(model, data, 3);
    CHECK_NOTHROW(model.save(folder / (name + ".keras")));
    losses[name] = test::losses_of(model, data, 20);
  }
  CHECK(losses.size() == 64);
  test::write_file(folder / "losses.json", losses.dump());
}

}  // namespace training_test
