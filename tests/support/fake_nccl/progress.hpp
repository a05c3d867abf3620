#pragma once

#include <cstdint>

#include <c10/core/Stream.h>

namespace tessera::test::fake_nccl {

/// Advances a stream up to a position after a short delay, on a separate thread: other ranks wait
/// for kernels that nobody waits for here.
void run_by_itself(c10::Stream stream, uint64_t position);

}  // namespace tessera::test::fake_nccl
