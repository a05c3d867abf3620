// Shapes of labels, sample weights and masks: the first axis is the batch.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace sample_weights_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

/// All losses whose labels have the shape of the predictions.
const std::vector<std::string> elementwise = {"mse",
                                              "mae",
                                              "mape",
                                              "msle",
                                              "log_cosh",
                                              "huber",
                                              "cosine_similarity",
                                              "hinge",
                                              "squared_hinge",
                                              "categorical_hinge",
                                              "kl_divergence",
                                              "poisson",
                                              "binary_crossentropy",
                                              "categorical_crossentropy",
                                              "binary_focal_crossentropy",
                                              "categorical_focal_crossentropy",
                                              "dice",
                                              "tversky"};

LossHandle made(const std::string& name, const Json& options = Json::object()) {
  const LossHandle loss = name.c_str();
  return loss_from_config({{"class_name", loss->class_name()}, {"config", options}});
}

std::vector<Mesh> meshes() {
  return {create_mesh({{"batch", 1}}), create_mesh({{"batch", 3}}),
          create_mesh({{"batch", 2}, {"model", 2}})};
}

/// Packs a tensor with its batch sharded.
DTensor rows(const at::Tensor& full, const Mesh& mesh) {
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

/// Returns probabilities that sum to 1 over the last axis.
at::Tensor chances(at::IntArrayRef shape, int64_t seed) {
  const at::Tensor x = at::arange(c10::multiply_integers(shape), at::kDouble).mul(0.7).add(seed);
  return x.sin().mul(2).reshape(shape).softmax(-1);
}

/// Returns the mean of w v over all values.
at::Tensor weighted_mean(const at::Tensor& values, const at::Tensor& weights) {
  return values.mul(weights).mean();
}

}  // namespace

TEST_CASE("a weight per row weights all losses of the row, whatever the number of steps") {
  for (const int64_t steps : {2, 5}) {
    const at::Tensor x = chances({5, steps, 3}, 1), y = chances({5, steps, 3}, 2);
    const at::Tensor of_rows = at::tensor({1.0, 0.0, 2.0, 5.0, 0.5});
    for (const std::string& name : elementwise) {
      if (name == "dice" || name == "tversky") continue;  // one loss of the whole batch
      CAPTURE(name, steps);
      for (const Mesh& mesh : meshes()) {
        const DTensor p = rows(x, mesh), labels = rows(y, mesh), w = rows(of_rows, mesh);
        const at::Tensor values = made(name)->values(labels, p).full();
        REQUIRE(values.sizes().vec() == Shape{5, steps});
        const at::Tensor column = of_rows.unsqueeze(1);
        CHECK(difference((*made(name))(labels, p, w).full(), weighted_mean(values, column),
                         1e-12) == "");
        CHECK(difference((*made(name, {{"reduction", "none"}}))(labels, p, w).full(),
                         values * column, 1e-12) == "");
        CHECK(difference((*made(name, {{"reduction", "sum"}}))(labels, p, w).full(),
                         (values * column).sum(), 1e-12) == "");
      }
    }
  }
}

TEST_CASE("weights per row and per step reach losses of more axes") {
  const at::Tensor x = chances({4, 4, 4, 3}, 3), y = chances({4, 4, 4, 3}, 4);
  const at::Tensor w = at::arange(16, at::kDouble).reshape({4, 4});
  for (const Mesh& mesh : meshes()) {
    const DTensor p = rows(x, mesh), labels = rows(y, mesh);
    const at::Tensor values = (x - y).square().mean(-1);
    const auto loss = [&](const at::Tensor& weights) {
      return (*MeanSquaredError())(labels, p, rows(weights, mesh)).full();
    };
    CHECK(difference(loss(w[1]), weighted_mean(values, w[1].view({4, 1, 1})), 1e-12) == "");
    CHECK(difference(loss(w), weighted_mean(values, w.unsqueeze(-1)), 1e-12) == "");
    CHECK(difference(loss(w.t().reshape({4, 1, 4})),
                     weighted_mean(values, w.t().reshape({4, 1, 4})), 1e-12) == "");
  }
}

TEST_CASE("a mask of steps covers losses of more or fewer axes, and weights per row join it") {
  const at::Tensor x = chances({3, 3, 3, 2}, 5), y = chances({3, 3, 3, 2}, 6);
  const at::Tensor kept = at::tensor({1, 1, 0, 1, 0, 0, 1, 1, 1}).view({3, 3}).to(at::kBool);
  const at::Tensor m = kept.to(at::kDouble), w = at::tensor({2.0, 1.0, 0.25});
  for (const Mesh& mesh : meshes()) {
    const DTensor labels = rows(y, mesh), p = rows(x, mesh).with_mask(rows(kept, mesh));
    const at::Tensor values = (x - y).square().mean(-1), wide = m.unsqueeze(-1);
    CHECK(difference((*MeanSquaredError())(labels, p).full(), (values * wide).sum() / (m.sum() * 3),
                     1e-12) == "");
    CHECK(difference((*MeanSquaredError())(labels, p, rows(w, mesh)).full(),
                     (values * wide * w.view({3, 1, 1})).sum() / (m.sum() * 3), 1e-12) == "");
    // The losses of rows: each counts once for every step that its mask leaves.
    const DTensor flat = rows(x.flatten(1), mesh).with_mask(rows(kept, mesh));
    const at::Tensor of_rows = (x - y).square().flatten(1).mean(-1, true);
    CHECK(difference((*MeanSquaredError())(rows(y.flatten(1), mesh), flat).full(),
                     (of_rows * m).sum() / m.sum(), 1e-12) == "");
  }
}

TEST_CASE("weights that fit no axis are refused with the shapes that do") {
  const DTensor x = ones({4, 3, 2, 5});
  CHECK_THROWS_WITH((*MeanSquaredError())(x, x, ones({3})),
                    Contains("[mean_squared_error] sample weights have the shape (4,), (4, 3) or "
                             "(4, 3, 2). Received: (3,). To fix: give one weight per row"));
  CHECK_THROWS_WITH((*MeanSquaredError())(x, x, ones({3, 2})), Contains("Received: (3, 2)"));
  CHECK_THROWS_WITH((*MeanSquaredError())(x, x, ones({4, 3, 2, 5})), Contains("Received: (4, 3,"));
  CHECK_THROWS_WITH((*MeanSquaredError())(ones({4, 3}), ones({4, 3}), ones({3})),
                    Contains("sample weights have the shape (4,). Received: (3,)"));
}

TEST_CASE("labels of another rank, or of extent 1 for several outputs, are refused by every loss") {
  const std::vector<std::pair<Shape, Shape>> misfits = {
      {{3}, {3, 3}}, {{4}, {4, 3}},       {{4, 1}, {4, 3}},      {{4, 3}, {4, 1}},
      {{1}, {3}},    {{3, 2}, {3, 3, 2}}, {{3, 3, 1}, {3, 3, 2}}};
  for (const std::string& name : elementwise) {
    for (const auto& [labels, predictions] : misfits) {
      CAPTURE(name, to_string(labels), to_string(predictions));
      CHECK_THROWS_AS((*made(name))(ones(labels), ones(predictions)), ShapeError);
    }
    CHECK_THROWS_WITH((*made(name))(ones({4, 1}), ones({4, 3})),
                      Contains("[" + made(name)->name() +
                               "] labels have the shape of the predictions, (4, 3). Received: "
                               "(4, 1). To fix: one-hot encode class indices, or use a sparse "
                               "loss or metric"));
  }
}

TEST_CASE("labels without the last axis of extent 1 fit, as in Keras") {
  const std::vector<std::pair<Shape, Shape>> fits = {
      {{4}, {4, 1}}, {{4, 1}, {4}}, {{4, 3}, {4, 3, 1}}, {{4, 3, 1}, {4, 3}}};
  for (const std::string& name : elementwise) {
    for (const auto& [labels, predictions] : fits) {
      CAPTURE(name, to_string(labels), to_string(predictions));
      CHECK_NOTHROW((*made(name))(ones(labels), ones(predictions)));
    }
  }
}

}  // namespace sample_weights_test
