#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::test {

/// When a layer of nap() slept, on the clock that all processes of a machine share.
struct NapTime {
  int64_t begin = 0, end = 0;  ///< nanoseconds
};

/// Makes a layer (batch, n) -> (batch, n) that multiplies each feature by a weight, and sleeps: as
/// long in its forward pass as for the gradient of its input and for that of its weight.
LayerHandle nap(const std::string& name, std::chrono::milliseconds time);

/// Returns the naps of this process since the last call.
std::vector<NapTime> taken_naps();

}  // namespace tessera::test
