#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

namespace detail {

/// Kind of the steps that a run takes.
enum class Phase : uint8_t { train, test, predict };

}  // namespace detail

/// Position of a fit: its next step. All numbers count from 0.
struct FitPosition {
  int64_t epoch = 0;
  int64_t step = 0;
  /// Pass over the training data, which determines the order of shuffled rows. Passes are counted
  /// over all fits of a model (default: `epoch`).
  std::optional<int64_t> pass = std::nullopt;
  /// Batch of that pass that the step reads. With steps_per_epoch, a pass may last several epochs
  /// (default: `step`).
  std::optional<int64_t> batch = std::nullopt;
};

namespace detail {

/// Returns " at epoch 1, step 3", without the epoch outside training; `epoch` counts from 0.
std::string position_text(Phase phase, int64_t epoch, int64_t step);

}  // namespace detail

}  // namespace tessera
