#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/strategy/strategies.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"

namespace average_loss_test {

using namespace tessera;
using namespace tessera::strategy;
using Catch::Contains;

namespace {

DTensor cut(const at::Tensor& full, int64_t devices) {
  const Mesh mesh = create_mesh({{"batch", devices}});
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

double value_of(const DTensor& value) { return value.full().item<double>(); }

}  // namespace

TEST_CASE("compute_average_loss divides by the number of rows, or by the given number") {
  const at::Tensor losses = at::tensor({1., 2., 3., 4., 5., 6.});
  for (const int64_t devices : {1, 2, 4}) {
    CHECK(value_of(compute_average_loss(cut(losses, devices))) == Approx(3.5));
    CHECK(value_of(compute_average_loss(cut(losses, devices), {}, 12)) == Approx(1.75));
  }
  // Each row counts as one, however many losses it has.
  CHECK(value_of(compute_average_loss(cut(losses.reshape({3, 2}), 2))) == Approx(7));
}

TEST_CASE("compute_average_loss weights examples as TensorFlow does") {
  const at::Tensor losses = at::tensor({2.5, 6.2, 5.});
  const at::Tensor weights = at::tensor({.6, .8, .2});
  const double mean = (2.5 * .6 + 6.2 * .8 + 5. * .2) / 3;
  CHECK(value_of(compute_average_loss(cut(losses, 2), cut(weights, 2))) == Approx(mean));
  CHECK(value_of(compute_average_loss(cut(losses, 2), cut(weights.reshape({3, 1}), 2))) ==
        Approx(mean));
  const at::Tensor twice = at::stack({losses, losses}, 1);
  CHECK(value_of(compute_average_loss(cut(twice, 2), cut(weights, 2), 3)) == Approx(2 * mean));
  CHECK(value_of(compute_average_loss(cut(twice, 2), cut(at::ones({3, 2}), 2))) ==
        Approx((2.5 + 6.2 + 5) * 2 / 3));
  const DTensor single = cut(at::ones({1}), 1);
  CHECK(value_of(compute_average_loss(cut(losses, 1), single * 2.)) == Approx(13.7 * 2 / 3));
}

TEST_CASE("compute_average_loss passes gradients") {
  const DTensor losses = cut(at::tensor({1., 2., 3., 4., 5., 6.}), 4);
  GradientTape tape;
  tape.watch(losses);
  const DTensor loss = compute_average_loss(losses);
  CHECK(at::allclose(tape.gradient(loss, losses).full(), at::full({6}, 1. / 6, at::kDouble)));
}

TEST_CASE("compute_average_loss refuses values that are no losses of examples") {
  const DTensor number = scalar(1, default_mesh());
  const DTensor losses = cut(at::ones({3}), 1);
  CHECK_THROWS_WITH(compute_average_loss(number),
                    Contains("[compute_average_loss] per_example_loss has an axis of examples. "
                             "Received: shape (). To fix: make the loss with Reduction::none."));
  CHECK_THROWS_AS(compute_average_loss(DTensor()), ShapeError);
  CHECK_THROWS_WITH(compute_average_loss(losses, {}, 0),
                    Contains("[compute_average_loss, global_batch_size] a batch has at least one "
                             "row. Received: 0"));
  CHECK_THROWS_WITH(compute_average_loss(losses, cut(at::ones({2}), 1)),
                    Contains("[compute_average_loss, sample_weight] sample weights have the "
                             "shape (3,). Received: (2,)"));
}

TEST_CASE("scale_regularization_loss counts a loss once over all replicas") {
  const MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1"}});
  strategy.run([] {
    const DTensor one = scalar(1, default_mesh());
    CHECK(value_of(scale_regularization_loss(one * 3.)) == 3);
    CHECK(value_of(scale_regularization_loss({one, one * 2.})) == 3);
    CHECK(value_of(scale_regularization_loss(ones({2, 2}))) == 4);
    CHECK(value_of(scale_regularization_loss(std::vector<DTensor>())) == 0);
  });
}

}  // namespace average_loss_test
