// Keras' example "Image similarity estimation using a Siamese network with a contrastive loss": one
// tower reads both pictures of a pair; the distance between its outputs says whether they are of
// different classes.

#include <memory>
#include <string>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "apps/common/example.hpp"
#include "apps/common/formula.hpp"

namespace {

using namespace tessera;

/// The contrastive loss (Hadsell, Chopra and LeCun, 2006) of distances, for labels 0 (same class)
/// and 1 (different classes).
struct ContrastiveLoss : Loss {
  explicit ContrastiveLoss(double least)
      : Loss(Reduction::sum_over_batch_size, "contrastive"), margin(least) {}
  std::string class_name() const override { return "ContrastiveLoss"; }
  Json config() const override { return Json::object({{"margin", margin}}); }
  /// call() has operations only, so steps may be recorded.
  bool can_be_replayed() const override { return true; }
  DTensor call(const DTensor& y, const DTensor& distance) const override {
    const DTensor same = (1 - y) * ops::square(distance);
    const DTensor different = y * ops::square(ops::maximum(margin - distance, 0.0));
    return ops::mean(same + different, {-1});
  }

  double margin;  ///< distance beyond which pictures of different classes add no loss
};

Functional make_siamese() {
  Sequential tower({Input({28, 28, 1}), Conv2D(4, 5, {.activation = "tanh"}), AveragePooling2D(2),
                    Conv2D(16, 5, {.activation = "tanh"}), AveragePooling2D(2), Flatten(),
                    Dense(10, {.activation = "tanh"})},
                   {.name = "tower"});
  Input left({28, 28, 1}, {.name = "left"});
  Input right({28, 28, 1}, {.name = "right"});
  const auto a = tower(left);
  const auto b = tower(right);
  const auto squares = ops::sum(ops::square(a - b), {1}, /*keepdims=*/true);
  return Functional({left, right}, {ops::sqrt(ops::maximum(squares, 1e-7))});
}

History train(const app::Example& example) {
  // Every second pair is of two classes.
  const at::Tensor classes = app::hashed_integers({640}, /*seed=*/1, 10);
  const at::Tensor differ = at::arange(640, at::kLong) % 2;
  const at::Tensor others = (classes + differ * (1 + app::hashed_integers({640}, 2, 9))) % 10;
  const at::Tensor left = app::hashed_digits(classes, /*seed=*/3);
  const at::Tensor right = app::hashed_digits(others, /*seed=*/4);
  const at::Tensor labels = differ.to(at::kFloat).unsqueeze(1);

  const Functional siamese = make_siamese();
  app::set_hashed_weights(siamese);
  siamese.compile({.optimizer = "rmsprop",
                   .loss = LossHandle(std::make_shared<ContrastiveLoss>(/*least=*/1.0)),
                   .metrics = {BinaryAccuracy({.name = "accuracy"})},
                   .layouts = example.layouts});
  return siamese.fit({{"left", left}, {"right", right}}, labels, example.fit);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::app::run_example(
      argc, argv,
      {.name = "siamese", .description = "Learns whether two pictures are of the same class."},
      train);
}
