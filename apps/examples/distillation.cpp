// Keras' example "Knowledge distillation": a small student learns from the labels and from the
// softened predictions of a larger teacher, which stays as it is.

#include <cstdio>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "apps/common/example.hpp"
#include "apps/common/formula.hpp"

namespace {

using namespace tessera;

struct Distiller : Model {
  Distiller(const Sequential& small, const Sequential& large)
      : Model(LayerOptions()), student(small), teacher(large) {
    track("student", student);
    track("teacher", teacher);
  }
  std::string class_name() const override { return "Distiller"; }

  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return student(inputs[0], context);
  }
  DTensor compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred) override {
    const DTensor expected = ops::softmax(teacher(batch.x[0]) / temperature);
    const DTensor softened = ops::softmax(y_pred[0] / temperature);
    // The gradients of softened predictions scale as 1 / temperature².
    const DTensor distilled = distillation_loss(expected, softened) * (temperature * temperature);
    return alpha * student_loss(batch.y[0], y_pred[0]) + (1 - alpha) * distilled;
  }

  Sequential student, teacher;
  LossHandle student_loss = SparseCategoricalCrossentropy({.from_logits = true});
  LossHandle distillation_loss = KLDivergence();
  double alpha = 0.1;  ///< weight of the student's own loss
  double temperature = 3;
};

Sequential make_classifier(int64_t filters, const std::string& name) {
  return Sequential(
      {Input({28, 28, 1}), Conv2D(filters, 3, {.strides = 2, .padding = "same"}),
       LeakyReLU({.negative_slope = 0.2}), MaxPooling2D(2, {.strides = 1, .padding = "same"}),
       Conv2D(2 * filters, 3, {.strides = 2, .padding = "same"}), Flatten(), Dense(10)},
      {.name = name});
}

History train(const app::Example& example) {
  const at::Tensor labels = app::hashed_integers({640}, /*seed=*/1, 10);
  const at::Tensor pictures = app::hashed_digits(labels, /*seed=*/2);

  const Sequential teacher = make_classifier(32, "teacher");
  const Sequential student = make_classifier(8, "student");
  app::set_hashed_weights(teacher);
  app::set_hashed_weights(student);
  teacher.compile({.optimizer = Adam(1e-4),
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = {"accuracy"},
                   .layouts = example.layouts});
  if (example.prints) std::puts("teacher");
  teacher.fit(pictures, labels, example.fit);

  teacher.set_trainable(false);
  Distiller distiller(student, teacher);
  distiller.compile({.optimizer = Adam(1e-3),
                     .metrics = {"accuracy"},
                     .record_steps = true,  // compute_loss() has operations only
                     .layouts = example.layouts});
  if (example.prints) std::puts("student");
  return distiller.fit(pictures, labels, example.fit);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::app::run_example(
      argc, argv,
      {.name = "distillation",
       .description = "Trains a teacher, then a student that learns from it."},
      train);
}
