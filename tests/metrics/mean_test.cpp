#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/mean.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"

namespace mean_test {

using namespace tessera;

namespace {

const Mesh mesh = create_mesh({{"batch", 4}});

}  // namespace

TEST_CASE("counts stay exact where float32 would not count on") {
  const Mean mean;
  const DTensor one = scalar(1, mesh);
  mean.update(one, double(int64_t{1} << 40));
  mean.update(scalar(0, mesh), 1);
  const std::vector<double> totals = Metric::totals({mean.get().get()})[0];
  CHECK(totals == std::vector<double>{std::ldexp(1.0, 40), std::ldexp(1.0, 40) + 1});
}

TEST_CASE("a loss is averaged over the rows of its batches") {
  const Mean mean({.name = "loss"});
  mean.update(scalar(2, mesh), 128);
  mean.update(scalar(5, mesh), 8);
  CHECK(mean.get()->name() == "loss");
  CHECK(mean.result() == Approx((2.0 * 128 + 5.0 * 8) / 136));
}

}  // namespace mean_test
