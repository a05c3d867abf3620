#include <tessera/metrics/new_metric.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"

namespace new_metric_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns the metric of labels 1, 2, 3 and predictions 0 on a mesh.
double value_of(Metric& metric, const Mesh& mesh) {
  const Layout rows = Layout::batch_sharded(mesh, "batch", 1);
  metric.update(pack(at::tensor({1.0, 2.0, 3.0}), rows), pack(at::zeros({3}, at::kDouble), rows));
  return metric.result();
}

}  // namespace

TEST_CASE("NewMetric on meshes of any size") {
  const int64_t devices = GENERATE(1, 2, 4);
  CHECK(value_of(*NewMetric({.factor = 2}).get(), create_mesh({{"batch", devices}})) == 4);
}

TEST_CASE("NewMetric is made by its name and from its configuration") {
  const std::shared_ptr<Metric> metric = make_metric("new_metric", "mine");
  CHECK(metric->name() == "mine");
  CHECK(value_of(*metric, create_mesh({{"batch", 2}})) == 2);
  const Json json = serialized(NewMetric({.factor = 3}).get());
  CHECK(serialized(metric_from_config(json)) == json);
}

}  // namespace new_metric_test
