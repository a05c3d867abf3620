#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// Runs single steps of a model on the examples of a batch, and adds their losses to its metrics.
/// The default mesh of a step is the model's, so that user-defined steps may create values.
/// `signature` is batch_signature(examples).
class StepRunner {
 public:
  StepRunner(Trainer& trainer, TrainingState& state) : trainer_(trainer), state_(state) {}

  /// Runs a training step. Its loss is added to the metrics, and passed to `on_loss`, when the loss
  /// queue reads it. Collective. Throws StateError for a read loss that must be finite and is not.
  void train(Examples&& examples, uint64_t signature,
             std::function<void(double)> on_loss = nullptr);
  /// Runs a test step; its loss is added to the metrics in the same way. Collective.
  void test(Examples&& examples, uint64_t signature);
  /// Returns every output, in full, on the host. Collective.
  std::vector<at::Tensor> predict(Examples&& examples, uint64_t signature);

 private:
  Batch prepare(Examples&& examples, uint64_t signature);
  DTensor train_step(const Batch& batch);

  Trainer& trainer_;
  TrainingState& state_;
};

/// Throws StateError for a loss of step `at` that is not finite; `blocks` are its partial sums on
/// this process.
void check_finite(double loss, const FitPosition& at, const Mesh& mesh, const Blocks& blocks = {});

/// Returns the value of a loss, resolved if it is a partial sum. Collective.
double read_loss(const DTensor& loss);
/// Resolves a loss. Collective. Throws ShapeError unless it is one number.
DTensor resolved_loss(const DTensor& loss);
/// Throws ShapeError unless a step's loss is one number.
void check_one_number(const DTensor& loss);

}  // namespace tessera::detail
