#pragma once

#include <memory>

#include <c10/core/Allocator.h>

namespace tessera::test::fake_gpu {

/// Returns the allocator of host memory from which copies to a GPU do not block.
c10::Allocator& pinned_allocator();

bool is_pinned(const void* address);

/// Keeps the pinned block that contains an address alive, even after it is freed, until the result
/// is destroyed.
std::shared_ptr<const void> hold_pinned(const void* address);

}  // namespace tessera::test::fake_gpu
