#pragma once

#include <memory>

#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {

/// Implements capture_graph() by CUDA graphs and a memory pool of ATen's allocator.
std::unique_ptr<GpuGraph> capture_on_cuda(const c10::Stream& stream);

}  // namespace tessera::detail
