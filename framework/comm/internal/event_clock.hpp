#pragma once

#include <tessera/framework/base/internal/gpu_clock.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {

/// Makes profiles measure GPU times by events on the threads' compute streams.
void use_event_clock(const Gpu& gpu);

}  // namespace tessera::detail
