#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {

/// Calls run(b) for every block, given one tensor of each: small ones of the CPU in parallel.
template <class Run>
void for_each_block(const std::vector<at::Tensor>& blocks, const Run& run) {
  int64_t largest = 0;
  int64_t total = 0;
  std::vector<c10::Device> devices;
  for (const at::Tensor& block : blocks) {
    largest = std::max(largest, block.numel());
    total += block.numel();
    devices.push_back(block.device());
  }
  // ATen shares the elements of a large block among threads better than blocks can be shared out.
  const bool parallel = total >= inline_elements && largest * worker_count() <= total;
  run_blocks(devices, parallel, [&](int64_t b) { run(static_cast<size_t>(b)); });
}

}  // namespace tessera::detail
