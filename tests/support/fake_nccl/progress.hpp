#pragma once

#include <cstdint>

#include <c10/core/Stream.h>

namespace tessera::test::fake_nccl {

/// Goes on with a stream up to a position, a while after it was asked for, on a thread of its own:
/// other ranks wait for kernels for which nobody waits here.
void run_by_itself(c10::Stream stream, uint64_t position);

}  // namespace tessera::test::fake_nccl
