#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/auc.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace auc_test {

using namespace tessera;

namespace {

const Mesh mesh = create_mesh({{"batch", 4}});

DTensor scores() { return pack(at::eye(5), Layout::batch_sharded(mesh, "batch", 2)); }

}  // namespace

TEST_CASE("totals of many labels and thresholds are restored") {
  const std::shared_ptr<Metric> metric = AUC({.multi_label = true}).get();
  CHECK(metric->result() == 0);
  metric->update(scores(), scores());
  const std::vector<double> totals = Metric::totals({metric.get()})[0];
  const std::shared_ptr<Metric> other = AUC({.multi_label = true}).get();
  other->restore(totals);
  CHECK(other->result_values().size() == 5);
  CHECK(other->result() == 1);
}

}  // namespace auc_test
