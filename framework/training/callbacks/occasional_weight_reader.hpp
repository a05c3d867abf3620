#pragma once

#include <cstdint>
#include <optional>

namespace tessera {

/// What a callback derives from, beside Callback, that reads the weights after some training
/// batches only. Where other processes make the steps (a StepExecutor), all that have begun are
/// waited for whenever a callback needs the weights: one that overrides on_train_batch_end needs
/// them after every batch, unless it is one of these.
class OccasionalWeightReader {
 public:
  virtual ~OccasionalWeightReader() = default;
  /// The training batch, 1 for the next one, at whose end the callback needs the weights as they
  /// then are; nothing: none. Asked between batches, where other processes make the steps.
  virtual std::optional<int64_t> batches_to_weights() = 0;
};

}  // namespace tessera
