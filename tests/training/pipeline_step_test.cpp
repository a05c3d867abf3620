#include <cstdint>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/pipelined_training.hpp"

namespace pipeline_step_test {

using namespace tessera;
using namespace tessera::test;

namespace {

Examples small_rows(int64_t rows, bool weighted = false) {
  std::vector<int64_t> all(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) all[size_t(r)] = r;
  return small_data(rows, 1, weighted).get(all);
}

const StagesByPath two_stages = {{"hidden_1", 0}, {"hidden_2", 1}, {"logits", 1}};

ModelHandle small_mlp(const LayoutMap& layouts) {
  const Sequential model = small_model();
  model.compile(small_compile(layouts));
  model.build({24, 18});
  return model;
}

}  // namespace

TEST_CASE("a pipeline trains an MLP like one device", "[pipeline]") {
  for (const char* const schedule : {"gpipe", "1f1b"}) {
    for (const int64_t microbatches : {1, 3, 4, 8}) {
      const PipelineScheme scheme = {schedule, 2, microbatches};
      CAPTURE(text(scheme));
      // Batches of 23, 23 and 4 rows.
      CHECK(training_difference(small_mlp, {{"batch", 1}}, small_rows(50), 23, 20, scheme,
                                two_stages) == "");
    }
  }
}

TEST_CASE("a pipeline over sharded batches trains like one device", "[pipeline]") {
  for (const int64_t microbatches : {3, 4}) {
    const PipelineScheme scheme = {"1f1b", 2, microbatches};
    CAPTURE(text(scheme));
    CHECK(training_difference(small_mlp, {{"batch", 2}}, small_rows(50, true), 23, 20, scheme,
                              two_stages) == "");
  }
}

}  // namespace pipeline_step_test
