#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/accuracy.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

namespace accuracy_test {

using namespace tessera;

namespace {

const Mesh mesh = create_mesh({{"batch", 4}});

DTensor labels(std::vector<int64_t> values) {
  return pack(at::tensor(values), Layout::batch_sharded(mesh, "batch", 1));
}

}  // namespace

TEST_CASE("non-finite predictions and labels that are no class are in no top k") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const DTensor predictions =
      pack(at::tensor({1.0, infinity, 2.0, nan, 1.0, 1.0, 3.0, 1.0, 2.0}).view({3, 3}),
           Layout::batch_sharded(mesh, "batch", 2));
  const std::shared_ptr<Metric> top = SparseTopKCategoricalAccuracy({.k = 3}).get();
  top->update(labels({1, 1, 2}), predictions);
  CHECK(top->result() == Approx(1.0 / 3));
  for (const int64_t no_class : {-1, 3}) {
    top->reset();
    top->update(labels({1, 1, no_class}), predictions);
    CHECK(top->result() == 0);
  }
}

}  // namespace accuracy_test
