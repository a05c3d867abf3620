#pragma once

#include <memory>

#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {

/// record_graph(), by CUDA's graphs and a pool of ATen's allocator.
std::unique_ptr<GpuGraph> record_on_cuda(const c10::Stream& stream);

}  // namespace tessera::detail
