#pragma once

#include <cstdint>
#include <string>

namespace tessera {

namespace detail {

/// What a run does with its batches.
enum class Phase : uint8_t { train, test, predict };

}  // namespace detail

/// Where a run of fit stands: the next step to make, both counted from 0.
struct FitPosition {
  int64_t epoch = 0;
  int64_t step = 0;
};

namespace detail {

/// " at epoch 1, step 3", without the epoch but in training; `epoch` counts from 0.
std::string place_of(Phase phase, int64_t epoch, int64_t step);

}  // namespace detail

}  // namespace tessera
