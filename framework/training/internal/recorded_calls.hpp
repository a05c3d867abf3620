#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

class StepCapture;

/// Captures and replays calls of a model that are steps of neither fit, evaluate nor predict, as
/// StepCapture does. The recordings of a compiled model are kept with it until it is compiled
/// again.
class RecordedCalls {
 public:
  /// The model must outlive this object.
  explicit RecordedCalls(Trainer& trainer) : trainer_(trainer) {}

  /// Runs `call`, which computes from the batch and the model's variables, or replays it. Values
  /// that it writes in place are tensors of the batch. Collective.
  std::vector<DTensor> run(const Batch& batch, const std::function<std::vector<DTensor>()>& call);
  /// Returns how many calls were eager, captured and replayed: of a compiled model, of all objects.
  StepRecords records() const;

 private:
  /// Returns the recordings of the model, or this object's; null before the first one.
  StepCapture* captures() const;

  Trainer& trainer_;
  std::shared_ptr<StepCapture> own_;
};

}  // namespace tessera::detail
