#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/masked_experts.hpp"
#include "tests/support/small_model.hpp"

/// Masks, documents and the losses of experts in stages, and batches of few rows.
namespace pipeline_masks_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

LayoutMap in_stages(const MeshDims& mesh, const std::string& schedule, int64_t microbatches) {
  LayoutMap layouts(create_mesh(mesh));
  layouts.set_pipeline({.microbatches = microbatches, .schedule = schedule});
  return layouts;
}

struct Trained {
  History history;
  Logs evaluated;
  std::vector<at::Tensor> weights;
};

Trained trained(const LayoutMap& layouts, int64_t rows, int64_t batch_size) {
  const Functional model = masked_experts();
  model.compile(masked_compile(layouts));
  Trained result;
  const TensorDataset data(masked_rows(rows));
  result.history = model.fit(data, {.batch_size = batch_size, .epochs = 2, .verbose = 0});
  result.evaluated = model.evaluate(data, {.batch_size = 4, .verbose = 0});
  result.weights = full_weights(model);
  return result;
}

bool is_close(double actual, double expected) {
  return std::abs(actual - expected) <= 1e-12 * std::max(1.0, std::abs(expected));
}

void check_equal(const Trained& actual, const Trained& expected) {
  REQUIRE(actual.history.steps.size() == expected.history.steps.size());
  for (size_t step = 0; step < expected.history.steps.size(); ++step) {
    CAPTURE(step, actual.history.steps[step], expected.history.steps[step]);
    CHECK(is_close(actual.history.steps[step], expected.history.steps[step]));
  }
  REQUIRE(actual.evaluated.size() == expected.evaluated.size());
  for (size_t i = 0; i < expected.evaluated.size(); ++i) {
    CAPTURE(expected.evaluated[i].first, actual.evaluated[i].second, expected.evaluated[i].second);
    CHECK(actual.evaluated[i].first == expected.evaluated[i].first);
    CHECK(is_close(actual.evaluated[i].second, expected.evaluated[i].second));
  }
  for (size_t w = 0; w < expected.weights.size(); ++w) {
    CAPTURE(w);
    CHECK(difference(actual.weights[w], expected.weights[w], 1e-12, 1e-12) == "");
  }
}

}  // namespace

TEST_CASE("masks, documents and losses of experts in stages are those of one device",
          "[pipeline]") {
  const DTypeScope doubles("float64");
  // Batches of 6 and 5 rows.
  const Trained expected = trained(LayoutMap(create_mesh({{"batch", 1}})), 11, 6);
  struct Case {
    MeshDims mesh;
    std::string schedule;
    int64_t microbatches;
  };
  for (const auto& [mesh, schedule, microbatches] :
       {Case{{{"stage", 2}}, "1f1b", 3}, Case{{{"stage", 3}, {"batch", 2}}, "zb_h1", 2},
        Case{{{"stage", 2}}, "zb_v", 4}, Case{{{"stage", 2}}, "interleaved", 8}}) {
    CAPTURE(schedule, microbatches);
    check_equal(trained(in_stages(mesh, schedule, microbatches), 11, 6), expected);
  }
}

TEST_CASE("batches of fewer rows than microbatches, and of one row, train in stages",
          "[pipeline]") {
  const DTypeScope doubles("float64");
  for (const int64_t batch_size : {1, 3}) {
    CAPTURE(batch_size);
    // The last of the batches of 3 rows has one.
    const Trained expected = trained(LayoutMap(create_mesh({{"batch", 1}})), 4, batch_size);
    for (const MeshDims& mesh : {MeshDims{{"stage", 3}}, MeshDims{{"stage", 2}, {"batch", 2}}}) {
      CAPTURE(mesh.size());
      check_equal(trained(in_stages(mesh, "1f1b", 4), 4, batch_size), expected);
    }
  }
}

}  // namespace pipeline_masks_test
