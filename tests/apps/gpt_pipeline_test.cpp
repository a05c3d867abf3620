#include <string>

#include "tests/apps/gpt_sample.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/pipelined_training.hpp"
#include "tests/support/seed_scope.hpp"

/// Trains gpt in stages: dropout, tied embeddings, residuals, a clipped global norm, a metric.
namespace gpt_pipeline_test {

using namespace tessera;
using namespace tessera::gpt;
using namespace tessera::test;

TEST_CASE("gpt in stages trains as one device does, under every schedule", "[pipeline]") {
  const DTypeScope doubles("float64");
  ModelSize size = odd_gpt(true);
  size.dropout = 0.1;
  const auto make = [&](const LayoutMap& layouts) -> ModelHandle {
    const SeedScope seed(7);
    const Functional model = gpt_model(size);
    CompileOptions options = gpt_training(layouts);
    options.optimizer = Adam(1e-3, {.global_clipnorm = 0.5});
    options.metrics = {"accuracy"};
    model.compile(options);
    return model;
  };
  const StagesByPath two = {{"block_3", 1}, {"block_4", 1}, {"norm", 1}, {"logits", 1}};
  const StagesByPath four = {
      {"block_2", 1}, {"block_3", 2}, {"block_4", 3}, {"norm", 3}, {"logits", 3}};
  // Batches of six rows and of four.
  const Examples data = gpt_batch(gpt_words(10, size), 0, 10);
  for (const std::string schedule : {"gpipe", "1f1b", "zb_h1", "interleaved", "zb_v"}) {
    const bool chunks = schedule == "interleaved" || schedule == "zb_v";
    for (const int64_t microbatches : {1, 3, 4}) {
      const PipelineScheme scheme = {schedule, 2, microbatches};
      CAPTURE(text(scheme));
      CHECK(training_difference(make, {{"batch", 1}}, data, 6, 4, scheme, chunks ? four : two) ==
            "");
    }
  }
}

}  // namespace gpt_pipeline_test
