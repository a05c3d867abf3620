#include <tessera/framework/ops/ops.hpp>
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

TEST_CASE("counts stay exact beyond float32's integers") {
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

TEST_CASE("host totals are appended to the devices' totals") {
  /// The fraction of rows whose prediction is above the label.
  class Share final : public Metric {
   public:
    Share() : Metric("share") {}
    std::string class_name() const override { return "Share"; }
    Json config() const override { return {{"name", name()}}; }
    void update(const DTensor& y_true, const DTensor& y_pred, const DTensor&) override {
      const DTensor above = ops::cast(ops::less(y_true, y_pred), at::kDouble);
      add(ops::reshape(ops::sum(above), {1}), {static_cast<double>(y_true.size(0)), 1});
    }
    double result(const std::vector<double>& totals) const override {
      return totals.empty() ? 0 : totals[0] / totals[1];
    }
  };
  Share made;
  Metric& share = made;
  const Layout rows = Layout::batch_sharded(mesh, "batch", 2);
  share.update(pack(at::zeros({4, 1}), rows), pack(at::ones({4, 1}), rows));
  share.update(pack(at::ones({8, 1}), rows), pack(at::zeros({8, 1}), rows));
  CHECK(Metric::totals({&share})[0] == std::vector<double>{4, 12, 2});
  CHECK(share.result() == Approx(4.0 / 12));
  share.restore(Metric::totals({&share})[0]);
  share.update(pack(at::zeros({4, 1}), rows), pack(at::ones({4, 1}), rows));
  CHECK(Metric::totals({&share})[0] == std::vector<double>{8, 16, 3});
}

}  // namespace mean_test
