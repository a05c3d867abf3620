#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// The context of a training step while alive: draws outside of layers follow the step, too.
class StepScope {
 public:
  explicit StepScope(TrainingState& state);

 private:
  const CallContext context_;
  const ScopedValue<std::shared_ptr<RandomStream>> random_;
  const ScopedValue<const CallContext*> in_step_;
};

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
  /// Runs a training step in stages. Throws ConfigError for a class with its own train_step(),
  /// unless compile() says that it may be recorded.
  DTensor pipelined_train_step(const Batch& batch);

  Trainer& trainer_;
  TrainingState& state_;
};

/// Returns the random numbers of the next training step.
std::shared_ptr<RandomStream> random_stream(const TrainingState& state);

/// Throws StateError for a loss of step `at` that is not finite; `blocks` are its partial sums on
/// this process.
void check_finite(double loss, const FitPosition& at, const Mesh& mesh, const Blocks& blocks = {});

/// Returns the value of a loss, resolved if it is a partial sum. Collective.
double read_loss(const DTensor& loss);
/// Resolves a loss. Collective. Throws ShapeError unless it is one number.
DTensor resolved_loss(const DTensor& loss);

}  // namespace tessera::detail
