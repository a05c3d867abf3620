// Shapes of labels and sample weights that fit by chance.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/metrics.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace metric_shapes_test {

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
double of(const MetricHandle& metric, const DTensor& y_true, const DTensor& y_pred,
          const DTensor& weight = {}) {
  metric.get()->reset();
  metric.get()->update(y_true, y_pred, weight);
  return metric.get()->result();
}

}  // namespace

TEST_CASE("a weight per row weights all values of the row in every metric") {
  const at::Tensor y = at::tensor({0., 1., 1., 0., 1., 0., 0., 0., 1.}).view({3, 3});
  const at::Tensor p = at::arange(9, at::kDouble).mul(2).sin().abs().view({3, 3});
  const at::Tensor w = at::tensor({1.0, 3.0, 0.5});
  const std::vector<MetricHandle> metrics = {Precision(),
                                             TruePositives(),
                                             AUC(),
                                             RecallAtPrecision(0.3),
                                             F1Score(),
                                             R2Score(),
                                             BinaryAccuracy(),
                                             metrics::MeanSquaredError(),
                                             RootMeanSquaredError(),
                                             Mean()};
  for (const Mesh& mesh : meshes()) {
    const DTensor labels = rows(y, mesh), predictions = rows(p, mesh);
    const DTensor all = rows(w.unsqueeze(1).expand({3, 3}).clone(), mesh);
    for (const MetricHandle& metric : metrics) {
      CAPTURE(metric.get()->name());
      // These average the last axis before they weight.
      const bool means = metric.get()->class_name() == "MeanSquaredError";
      const double expected = of(metric, labels, predictions, means ? rows(w, mesh) : all);
      CHECK(of(metric, labels, predictions, rows(w, mesh)) == Approx(expected));
      CHECK(of(metric, labels, predictions, rows(w.view({3, 1}), mesh)) == Approx(expected));
    }
    // Three axes: rows, steps and labels.
    const DTensor steps = rows(at::stack({y, y.t(), 1 - y}, 1), mesh);
    const DTensor seen = rows(at::stack({p, p.flip(0), p * p}, 1), mesh);
    const DTensor wide = rows(w.view({3, 1, 1}).expand({3, 3, 3}).clone(), mesh);
    for (const MetricHandle& metric : {MetricHandle(Precision()), MetricHandle(FalseNegatives())}) {
      CHECK(of(metric, steps, seen, rows(w, mesh)) == Approx(of(metric, steps, seen, wide)));
    }
  }
}

TEST_CASE("a weight per row joins the predictions' mask and ignored classes") {
  const at::Tensor y = at::tensor({0, 1, 1, 0, 1, 0, 0, 0, 1}).view({3, 3});
  const at::Tensor p = at::arange(18, at::kDouble).mul(1.7).sin().view({3, 3, 2});
  const at::Tensor kept = at::tensor({1, 1, 0, 1, 0, 0, 1, 1, 1}).view({3, 3}).to(at::kBool);
  const at::Tensor w = at::tensor({1.0, 3.0, 0.5}), m = kept.to(at::kDouble) * w.unsqueeze(1);
  const at::Tensor hits = p.argmax(-1).eq(y).to(at::kDouble);
  const at::Tensor entropy = -p.log_softmax(-1).gather(-1, y.unsqueeze(-1)).squeeze(-1);
  const at::Tensor some = y.ne(0).to(at::kDouble) * w.unsqueeze(1);
  for (const Mesh& mesh : meshes()) {
    const DTensor labels = rows(y, mesh), seen = rows(p, mesh), weights = rows(w, mesh);
    CHECK(of(SparseCategoricalAccuracy(), labels, seen.with_mask(rows(kept, mesh)), weights) ==
          Approx((hits * m).sum().item<double>() / m.sum().item<double>()));
    const metrics::SparseCategoricalCrossentropy ignoring({.from_logits = true, .ignore_class = 0});
    CHECK(of(ignoring, labels, seen, weights) ==
          Approx((entropy * some).sum().item<double>() / some.sum().item<double>()));
  }
}

TEST_CASE("metrics refuse labels that only broadcast to the predictions") {
  const std::vector<MetricHandle> metrics = {RootMeanSquaredError(),
                                             metrics::MeanSquaredError(),
                                             metrics::CosineSimilarity(),
                                             metrics::Hinge(),
                                             LogCoshError(),
                                             Accuracy(),
                                             BinaryAccuracy(),
                                             CategoricalAccuracy(),
                                             TopKCategoricalAccuracy({.k = 2}),
                                             PearsonCorrelation(),
                                             ConcordanceCorrelation(),
                                             R2Score(),
                                             F1Score(),
                                             Precision(),
                                             AUC()};
  for (const MetricHandle& metric : metrics) {
    CAPTURE(metric.get()->name());
    CHECK_THROWS_AS(of(metric, ones({3}), ones({3, 3})), ShapeError);
    CHECK_THROWS_AS(of(metric, ones({4, 1}), ones({4, 3})), ShapeError);
    CHECK_THROWS_AS(of(metric, ones({4, 3}), ones({4, 1})), ShapeError);
  }
  CHECK_THROWS_WITH(of(SparseCategoricalAccuracy(), ones({3, 3}), ones({3, 3})),
                    Contains("[SparseCategoricalAccuracy] predictions (..., classes) go with"));
}

}  // namespace metric_shapes_test
