#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// Reuses the host memory of large results that nobody holds any more, since touching a page for
/// the first time costs more than filling it over a network. Keeps at most 256 MiB, and frees the
/// oldest unused blocks for new ones. GPUs' memory comes from ATen's allocator, which does the
/// same. Not thread-safe.
class ResultBuffers {
 public:
  /// Returns an uninitialized contiguous tensor.
  at::Tensor make(const Shape& shape, const at::TensorOptions& options);

  /// Counts memory until it is freed, as ATen's allocator does that of other tensors.
  using Count = c10::DataPtr (*)(c10::DataPtr memory, size_t bytes);
  /// Sets what counts each result while a tensor holds it.
  static void count_with(Count count) { count_ = count; }

 private:
  inline static std::atomic<Count> count_ = nullptr;
  struct Block {
    std::shared_ptr<void> memory;
    size_t bytes;
  };
  std::deque<Block> blocks_;  ///< oldest first
  size_t cached_bytes_ = 0;
};

}  // namespace tessera::detail
