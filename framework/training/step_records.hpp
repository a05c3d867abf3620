#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/tensor/internal/memory_planner.hpp>

namespace tessera {

/// What became of a model's training steps since compile().
struct StepRecords {
  int64_t eager = 0;                    ///< steps by the model's code, those recorded included
  int64_t recorded = 0;                 ///< eager ones that were recorded; each form of batch once
  int64_t replayed = 0;                 ///< steps that were replayed from a recording
  int64_t instructions = 0;             ///< in the last step that was replayed
  detail::MemoryPlanner::Stats memory;  ///< what the last step that was replayed took
  std::string why;  ///< why the last step was not recorded or replayed; empty if it was
};

}  // namespace tessera
