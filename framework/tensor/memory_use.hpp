#pragma once

#include <array>
#include <cstdint>

namespace tessera {

/// The uses of a training step's memory, in plans (StepPlan) and measurements (DeviceMemory).
enum class MemoryUse : uint8_t {
  weights,      ///< Variables, but for slots
  slots,        ///< the optimizer's Variables, such as moments, and their buffers
  batch,        ///< the data of the step
  casts,        ///< weights in another dtype
  gathered,     ///< all-gathered weights, in any dtype
  gradients,    ///< partial sums and sums; also other values assigned to Variables
  activations,  ///< all other values, also those of the backward pass
};
inline constexpr std::array memory_uses = {
    MemoryUse::weights,  MemoryUse::slots,     MemoryUse::batch,      MemoryUse::casts,
    MemoryUse::gathered, MemoryUse::gradients, MemoryUse::activations};

/// Returns the name of a use: "weights".
const char* to_string(MemoryUse use);

/// Bytes by use.
struct MemoryByUse {
  double weights = 0, slots = 0, batch = 0, casts = 0, gathered = 0, gradients = 0, activations = 0;
  double& operator[](MemoryUse use);
  double operator[](MemoryUse use) const;
  double total() const {
    return weights + slots + batch + casts + gathered + gradients + activations;
  }
};

}  // namespace tessera
