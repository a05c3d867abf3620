// Losses whose classes are along another axis than the last.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"

namespace class_axis_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

/// 2 rows of 3 classes by 5 positions: one-hot labels, and logits.
at::Tensor labels() {
  const at::Tensor classes = at::tensor({0, 2, 1, 1, 2, 2, 0, 1, 0, 2}).view({2, 5});
  return at::one_hot(classes.to(at::kLong), 3).transpose(1, 2).to(at::kDouble).contiguous();
}
at::Tensor logits() { return at::arange(30, at::kDouble).mul(1.3).sin().mul(2).view({2, 3, 5}); }

/// Returns the losses (2, 5) of labels smoothed over the 3 classes of axis 1.
at::Tensor expected(double smoothing, double gamma, const at::Tensor& alpha) {
  const at::Tensor y = labels() * (1 - smoothing) + smoothing / 3;
  const at::Tensor p = logits().softmax(1).clamp(1e-7, 1 - 1e-7);
  return -(alpha.view({-1, 1}) * (1 - p).pow(gamma) * y * p.log()).sum(1);
}

void check(const LossHandle& loss, const at::Tensor& predictions, const at::Tensor& values) {
  for (const Mesh& mesh :
       {create_mesh({{"x", 1}}), create_mesh({{"x", 2}, {"y", 2}}), create_mesh({{"x", 3}})}) {
    for (const Layout& layout : all_layouts(mesh, 3)) {
      CAPTURE(loss->name(), layout.describe());
      const DTensor value = (*loss)(pack(labels(), layout), pack(predictions, layout));
      CHECK(difference(value.full(), values, 1e-9) == "");
    }
  }
}

}  // namespace

TEST_CASE("label_smoothing counts the classes along the axis") {
  const at::Tensor one = at::ones({1}, at::kDouble), p = logits().softmax(1);
  const Reduction none = Reduction::none;
  check(CategoricalCrossentropy(
            {.from_logits = true, .label_smoothing = 0.3, .axis = 1, .reduction = none}),
        logits(), expected(0.3, 0, one));
  check(CategoricalCrossentropy({.label_smoothing = 0.3, .axis = -2, .reduction = none}), p,
        expected(0.3, 0, one));
  check(CategoricalFocalCrossentropy(
            {.alpha = {0.5}, .label_smoothing = 0.3, .axis = 1, .reduction = none}),
        p, expected(0.3, 2, at::full({1}, 0.5, at::kDouble)));
}

TEST_CASE("a focal loss has one alpha for each class along the axis") {
  const CategoricalFocalCrossentropy loss({.alpha = {0.2, 0.5, 1.5},
                                           .gamma = 1.5,
                                           .from_logits = true,
                                           .axis = 1,
                                           .reduction = Reduction::none});
  check(loss, logits(), expected(0, 1.5, at::tensor({0.2, 0.5, 1.5})));
  const CategoricalFocalCrossentropy five({.alpha = {1, 2, 3, 4, 5}, .axis = 1});
  const DTensor y = ones({2, 3, 5});
  CHECK_THROWS_WITH((*five)(y, y), Contains("one for each of the 3 classes of (2, 3, 5). "
                                            "Received: 5 numbers"));
}

}  // namespace class_axis_test
