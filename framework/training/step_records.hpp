#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/tensor/device_memory.hpp>

namespace tessera {

/// How many of a model's steps since compile() were eager, captured and replayed.
struct StepRecords {
  int64_t eager = 0;         ///< eager steps, including captured ones
  int64_t recorded = 0;      ///< captured steps: one for each batch signature
  int64_t replayed = 0;      ///< replayed steps
  int64_t instructions = 0;  ///< length of the last replayed step
  /// Operations of the last replayed step that compute from weights alone, which run only once the
  /// weights have changed, and those that stand for several.
  int64_t hoisted = 0, fused = 0;
  StepMemory memory;    ///< memory of the last replayed step
  int64_t checked = 0;  ///< compared with the code (TESSERA_RECORD_STEPS=check)
  std::string why;      ///< why the last step was neither captured nor replayed; empty if it was
};

}  // namespace tessera
