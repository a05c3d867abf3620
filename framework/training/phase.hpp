#pragma once

#include <cstdint>
#include <string>

namespace tessera {

namespace detail {

/// Kind of the steps that a run takes.
enum class Phase : uint8_t { train, test, predict };

}  // namespace detail

/// Position of a fit: its next step. Epoch and step count from 0.
struct FitPosition {
  int64_t epoch = 0;
  int64_t step = 0;
};

namespace detail {

/// Returns " at epoch 1, step 3", without the epoch outside training; `epoch` counts from 0.
std::string position_text(Phase phase, int64_t epoch, int64_t step);

}  // namespace detail

}  // namespace tessera
