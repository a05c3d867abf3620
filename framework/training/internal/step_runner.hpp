#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// Makes single steps of a model on the examples of a batch, whose losses add up in its metrics.
/// `form` is the hash of what form_of() says of the examples.
class StepRunner {
 public:
  StepRunner(Trainer& trainer, TrainingState& state) : trainer_(trainer), state_(state) {}

  /// Makes a training step, whose loss goes to the state's metrics and to `heard` when its queue of
  /// losses comes to it. Collective. Throws StateError for a loss there that must be finite and is
  /// not.
  void train(Examples&& examples, uint64_t form, std::function<void(double)> heard = nullptr);
  /// Makes a test step, whose loss goes to the metrics in the same way. Collective.
  void test(Examples&& examples, uint64_t form);
  /// Every output, whole, on the host. Collective.
  std::vector<at::Tensor> predict(Examples&& examples, uint64_t form);

 private:
  Batch prepare(Examples&& examples, uint64_t form);
  DTensor train_step(const Batch& batch);

  Trainer& trainer_;
  TrainingState& state_;
};

/// Throws StateError for a loss of the step `at` that is not finite; `parts` are its addends here.
void check_finite(double loss, const FitPosition& at, const Mesh& mesh, const Blocks& parts = {});

/// The number in a loss, reduced if it is pending. Collective.
double read_loss(const DTensor& loss);
/// A loss that no reduction is left of. Collective. Throws ShapeError unless it is one number.
DTensor whole_loss(const DTensor& loss);
/// Throws ShapeError unless a step's loss is one number.
void check_one_number(const DTensor& loss);

}  // namespace tessera::detail
