// Tests that wrapping optimizers resume like the plain ones of resume_test.cpp.
#include <tessera/tessera.hpp>

#include "tests/io/resumable.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/files.hpp"

namespace resume_optimizers_test {

using namespace tessera;
using namespace tessera::detail;
using test::differs;
using test::dropout_model;
using test::Everything;
using test::Interruption;
using test::optimizer_named;
using test::Run;
using test::some_layouts;
using test::train;
using test::with_everything;

namespace {

Json scaled(const Json& inner, double scale = 1024) {
  return {{"class_name", "LossScaleOptimizer"},
          {"config",
           {{"inner_optimizer", inner}, {"initial_scale", scale}, {"dynamic_growth_steps", 4}}}};
}

Json several() {
  Json lamb = optimizer_named("lamb");
  lamb["config"]["learning_rate"] = 0.02;
  const Json map = {
      {"default_optimizer", with_everything(optimizer_named("sgd"))},
      {"optimizer_map",
       {{"hidden_1/kernel", lamb}, {".*/bias", optimizer_named("schedulefreeadamw")}}}};
  return {{"class_name", "MultiOptimizer"},
          {"config", {{"optimizer_map", {{"class_name", "OptimizerMap"}, {"config", map}}}}}};
}

std::string refused(const Json& optimizer, const std::string& path) {
  const ModelHandle model = dropout_model(optimizer, some_layouts());
  train(model, {}, 1);
  Checkpoint checkpoint(model);
  try {
    checkpoint.restore(path);
  } catch (const CheckpointMismatch& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a resumed run with wrapping optimizers equals the uninterrupted one") {
  for (const Json& optimizer :
       {scaled(optimizer_named("adam")), scaled(with_everything(optimizer_named("muon")), 1e30),
        several()}) {
    CAPTURE(optimizer.dump());
    const ModelHandle uninterrupted = dropout_model(optimizer, some_layouts());
    const Run expected = train(uninterrupted, {});
    const test::TempFolder folder;
    const ModelHandle first = dropout_model(optimizer, some_layouts());
    const std::string backup = folder / "backup";
    CHECK_THROWS_AS(train(first, {Interruption(13), BackupAndRestore(backup, {.save_freq = 10})}),
                    StateError);
    const ModelHandle second = dropout_model(optimizer, some_layouts());
    const Run resumed = train(second, {BackupAndRestore(backup, {.save_freq = 10})});
    CHECK(resumed.steps == 11);
    CHECK(differs(expected, resumed) == "");
    CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
    CHECK(second->optimizer()->state() == uninterrupted->optimizer()->state());
    CHECK(second->optimizer()->iterations() == uninterrupted->optimizer()->iterations());
  }
}

TEST_CASE("a checkpoint with other inner optimizers is refused") {
  const test::TempFolder folder;
  const ModelHandle model = dropout_model(scaled(optimizer_named("adam")), some_layouts());
  train(model, {}, 1);
  Checkpoint saving(model);
  const std::string path = folder / "checkpoint";
  saving.save(path);
  CHECK(refused(scaled(optimizer_named("adam")), path).empty());
  CHECK_THAT(refused(scaled(optimizer_named("sgd")), path),
             Catch::Contains("\"Adam\"") && Catch::Contains("SGD"));
  CHECK_THAT(refused(several(), path), Catch::Contains("\"LossScaleOptimizer\""));
}

}  // namespace resume_optimizers_test
