#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/confusion_counts.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"

namespace confusion_counts_test {

using namespace tessera;

namespace {

const Mesh mesh = create_mesh({{"batch", 4}});

DTensor labels(std::vector<int64_t> values) {
  return pack(at::tensor(values), Layout::batch_sharded(mesh, "batch", 1));
}

}  // namespace

TEST_CASE("a NaN prediction is not positive") {
  for (const auto& metric :
       {TruePositives().get(), TruePositives({.thresholds = {0, 0.5, 1}}).get()}) {
    metric->update(labels({1, 1}),
                   pack(at::tensor({std::nan(""), 0.7}), Layout::replicated(mesh, 1)));
    CHECK(metric->result_values()[metric->result_values().size() / 2] == 1);
  }
}

TEST_CASE("predictions beyond evenly spaced thresholds count as 0 and 1") {
  const std::shared_ptr<Metric> hits = TruePositives({.thresholds = {0, 0.5, 1}}).get();
  hits->update(labels({1, 1}), pack(at::tensor({-3.0, 7.0}), Layout::replicated(mesh, 1)));
  CHECK(hits->result_values() == std::vector<double>{1, 1, 0});
}

}  // namespace confusion_counts_test
