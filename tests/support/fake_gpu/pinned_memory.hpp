#pragma once

#include <memory>

#include <c10/core/Allocator.h>

namespace tessera::test::fake_gpu {

/// Memory of the host from which copies to a GPU are not waited for.
c10::Allocator& pinned_allocator();

bool is_pinned(const void* address);

/// Keeps the pinned block that an address lies in until it is destroyed, given back or not.
std::shared_ptr<const void> hold_pinned(const void* address);

}  // namespace tessera::test::fake_gpu
