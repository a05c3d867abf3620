#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/small_model.hpp"

/// Checkpoints of models in stages.
namespace pipeline_checkpoint_test {

using namespace tessera;
using namespace tessera::test;

namespace {

Sequential compiled(const LayoutMap& layouts) {
  const Sequential model = small_model();
  model.compile(small_compile(layouts));
  model.build({24, 18});
  return model;
}

Sequential in_stages(int64_t devices) {
  LayoutMap layouts(create_mesh({{"stage", devices}, {"batch", 2}}));
  layouts.set_pipeline({.microbatches = 4, .schedule = "1f1b"});
  return compiled(layouts);
}

Sequential with_columns() {
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}));
  layouts["hidden_1/kernel"] = {unsharded, "model"};
  layouts["hidden_2/kernel"] = {"model", unsharded};
  return compiled(layouts);
}

}  // namespace

TEST_CASE("a checkpoint of stages is read without them and with others, bit for bit",
          "[pipeline]") {
  const TempFolder folder;
  const FitOptions options = {.batch_size = 23, .epochs = 1, .verbose = 0};
  const Sequential three = in_stages(3);
  three.fit(small_data(50), options);
  const Everything expected(three);
  const std::string path = folder / "three";
  Checkpoint(three).save(path);
  for (const Sequential& model :
       {compiled(LayoutMap(create_mesh({{"batch", 1}}))), with_columns(), in_stages(2)}) {
    Checkpoint(model).restore(path);
    CHECK(Everything(model).difference(expected) == "");
  }
}

TEST_CASE("a checkpoint without stages is read into those of a model that was divided",
          "[pipeline]") {
  const TempFolder folder;
  const Sequential plain = with_columns();
  const FitOptions options = {.batch_size = 23, .epochs = 2, .verbose = 0};
  plain.fit(small_data(50), options);
  Checkpoint(plain).save(folder / "plain");
  const Sequential staged = in_stages(3);
  staged.fit(small_data(50, 5), {.batch_size = 23, .epochs = 1, .verbose = 0});
  Checkpoint(staged).restore(folder / "plain");
  CHECK(Everything(staged).difference(Everything(plain)) == "");
  REQUIRE(staged->weights()[0].layout().mesh().is_view());
}

TEST_CASE("a model that is read from a file of Keras is divided into stages by itself",
          "[pipeline]") {
  const TempFolder folder;
  const std::string path = folder / "model.keras";
  const Sequential written = small_model();
  written.compile(
      {.optimizer = Adam(1e-2), .loss = SparseCategoricalCrossentropy({.from_logits = true})});
  written.fit(small_data(50), {.batch_size = 23, .epochs = 1, .verbose = 0});
  written.save(path);
  LayoutMap layouts(create_mesh({{"stage", 3}, {"batch", 2}}));
  layouts.set_pipeline({.microbatches = 4, .schedule = "zb_h1"});
  const ModelHandle staged = load_model(path, {.layouts = layouts});
  const ModelHandle plain = load_model(path);
  const FitOptions options = {.batch_size = 23, .epochs = 2, .verbose = 0};
  const History actual = staged.fit(small_data(50), options);
  const History expected = plain.fit(small_data(50), options);
  REQUIRE(actual.steps.size() == 6);
  for (size_t step = 0; step < actual.steps.size(); ++step) {
    CHECK(actual.steps[step] == Approx(expected.steps[step]).epsilon(1e-12));
  }
  const std::vector<at::Tensor> here = full_weights(staged), there = full_weights(plain);
  for (size_t w = 0; w < there.size(); ++w) {
    CHECK(difference(here[w], there[w], 1e-12, 1e-12) == "");
  }
}

}  // namespace pipeline_checkpoint_test
