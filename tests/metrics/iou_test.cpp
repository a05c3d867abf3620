#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/iou.hpp>
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace iou_test {

using namespace tessera;
using Catch::Contains;

namespace {

std::vector<Mesh> meshes() {
  return {create_mesh({{"batch", 1}}), create_mesh({{"batch", 3}}),
          create_mesh({{"batch", 2}, {"model", 2}})};
}

DTensor rows(const at::Tensor& full, const Mesh& mesh) {
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

/// Returns a metric's result after one batch.
double of(const MetricHandle& metric, const Mesh& mesh, const at::Tensor& y_true,
          const at::Tensor& y_pred, const at::Tensor& weight = {}) {
  metric.get()->reset();
  metric.get()->update(rows(y_true, mesh), rows(y_pred, mesh),
                       weight.defined() ? rows(weight, mesh) : DTensor());
  return metric.get()->result();
}

const at::Tensor truth = at::tensor({0, 0, 1, 1, 1, 0});

}  // namespace

TEST_CASE("a prediction that names no class is a miss of the label's class") {
  // Class 0: 2 of 3 found, no other; class 1: 2 of 3 found, no other.
  for (const Mesh& mesh : meshes()) {
    const at::Tensor seen = at::tensor({0, 5, 1, 1, -1, 0});
    CHECK(of(MeanIoU(2), mesh, truth, seen) == Approx(2.0 / 3).epsilon(1e-6));
    CHECK(of(IoU(2, {1}), mesh, truth, seen) == Approx(2.0 / 3).epsilon(1e-6));
    // The weights of the misses count: 2 of 2 + 4, and 5 of 5 + 3.
    const at::Tensor weights = at::tensor({1.0, 4.0, 2.0, 3.0, 3.0, 1.0});
    CHECK(of(MeanIoU(2), mesh, truth, seen, weights) ==
          Approx((2.0 / 6 + 5.0 / 8) / 2).epsilon(1e-6));
    // A mistaken class is a miss of the label's and a false positive of the other's.
    const at::Tensor mixed = at::tensor({0, 2, 1, 0, 1, 0});
    CHECK(of(MeanIoU(2), mesh, truth, mixed) == Approx((2.0 / 4 + 2.0 / 3) / 2).epsilon(1e-6));
  }
}

TEST_CASE("an ignored label counts nowhere, and another label that names no class is an error") {
  for (const Mesh& mesh : meshes()) {
    const at::Tensor y = at::tensor({0, 255, 1, 1, 255, 0}), p = at::tensor({0, 7, 1, 0, 1, 0});
    CHECK(of(MeanIoU(2, {.ignore_class = 255}), mesh, y, p) ==
          Approx((2.0 / 3 + 1.0 / 2) / 2).epsilon(1e-6));
    const at::Tensor wrong = at::tensor({0, 1, 7, 1, 0, 0}),
                     low = at::tensor({0, 255, -1, 1, 0, 0});
    CHECK_THROWS_WITH(of(MeanIoU(2), mesh, wrong, p), Contains("[mean_io_u, labels, gather]") &&
                                                          Contains("lie in [0, 2)") &&
                                                          Contains("Received: 7 in row 2"));
    CHECK_THROWS_WITH(of(IoU(2, {0}, {.name = "road", .ignore_class = 255}), mesh, low, p),
                      Contains("[road, labels, gather]") && Contains("Received: -1 in row 2"));
    CHECK_THROWS_WITH(of(BinaryIoU(), mesh, wrong, p), Contains("[binary_io_u, labels"));
    CHECK_THROWS_WITH(of(OneHotMeanIoU(2), mesh, at::eye(3), at::eye(3)),
                      Contains("[one_hot_mean_io_u, labels, gather]") && Contains("Received: 2"));
  }
}

TEST_CASE("a weight per row weights all pixels of a row") {
  const at::Tensor y = at::tensor({0, 1, 1, 0, 1, 0, 0, 0, 1}).view({3, 3});
  const at::Tensor p = at::tensor({0, 1, 0, 0, 1, 1, 1, 0, 1}).view({3, 3});
  const at::Tensor w = at::tensor({1.0, 3.0, 0.5});
  for (const Mesh& mesh : meshes()) {
    const double expected =
        of(MeanIoU(2, {.dtype = "float32"}), mesh, y, p, w.unsqueeze(1).expand({3, 3}).clone());
    CHECK(of(MeanIoU(2, {.dtype = "float32"}), mesh, y, p, w) == Approx(expected));
    CHECK(of(MeanIoU(2, {.dtype = "float32"}), mesh, y, p, w.view({3, 1})) == Approx(expected));
    CHECK_THROWS_WITH(of(MeanIoU(2), mesh, y.slice(1, 0, 2), p.slice(1, 0, 2), at::ones({2})),
                      Contains("sample weights have the shape (3,) or (3, 2). Received: (2,)"));
  }
}

TEST_CASE("scores of different numbers of classes are refused") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  CHECK_THROWS_WITH(of(OneHotMeanIoU(3), mesh, at::zeros({4, 1}), at::rand({4, 3})),
                    Contains("[one_hot_mean_io_u] labels and predictions are scores of the same "
                             "classes. Received: (4, 1) and (4, 3)"));
}

TEST_CASE("a label that names no class is an error in replayed steps, too") {
  for (const bool eager : {true, false}) {
    const Sequential model({Input({2}), Dense(1)});
    model.compile({.optimizer = SGD(0.0),
                   .loss = "mse",
                   .metrics = {BinaryIoU()},
                   .run_eagerly = eager,
                   .layouts = LayoutMap(create_mesh({{"batch", 2}}))});
    const at::Tensor x = at::ones({4, 2}), y = at::tensor({0.F, 1.F, 1.F, 0.F}).view({4, 1});
    for (int step = 0; step < 3; ++step) model.train_on_batch(x, y);
    CHECK((model.step_records().replayed > 0) == !eager);
    const at::Tensor wrong = at::tensor({0.F, 1.F, 7.F, 0.F}).view({4, 1});
    CHECK_THROWS_WITH(model.train_on_batch(x, wrong), Contains("[binary_io_u, labels, gather]") &&
                                                          Contains("Received: 7 at (2, 0)"));
  }
}

}  // namespace iou_test
