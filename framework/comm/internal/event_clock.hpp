#pragma once

#include <tessera/framework/base/internal/gpu_clock.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {

/// Has profiles take the times of a GPU, by events on the threads' compute streams.
void time_by_events(const Gpu& gpu);

}  // namespace tessera::detail
