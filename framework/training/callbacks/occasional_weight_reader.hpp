#pragma once

#include <cstdint>
#include <optional>

namespace tessera {

/// Second base of callbacks that read the weights only after some training batches. Where other
/// processes run the steps (StepExecutor), reading the weights waits for all steps that have begun.
/// A callback that overrides on_train_batch_end is taken to need the weights after every batch,
/// unless it derives from this class.
class OccasionalWeightReader {
 public:
  virtual ~OccasionalWeightReader() = default;
  /// Returns the number of training batches after which the callback needs the weights, 1 for the
  /// next one; nothing: never. Called between batches, where other processes run the steps.
  virtual std::optional<int64_t> batches_to_weights() = 0;
};

}  // namespace tessera
