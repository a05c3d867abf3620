#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tessera/framework/tensor/execution.hpp>

namespace tessera {

/// Calls run(b) for every block, given the blocks' numbers of elements: small ones in parallel.
template <class Run>
void run_sized(const std::vector<int64_t>& sizes, const Run& run) {
  int64_t largest = 0;
  int64_t total = 0;
  for (int64_t size : sizes) {
    largest = std::max(largest, size);
    total += size;
  }
  // ATen shares the elements of a large block among threads better than blocks can be shared out.
  const bool parallel = total >= inline_elements && largest * worker_count() <= total;
  run_blocks(static_cast<int64_t>(sizes.size()), parallel,
             [&](int64_t b) { run(static_cast<size_t>(b)); });
}

}  // namespace tessera
