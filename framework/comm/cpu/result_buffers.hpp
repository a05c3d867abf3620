#pragma once

#include <cstddef>
#include <deque>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// Reuses the memory of large results that nobody holds any more, since touching a page for the
/// first time costs more than filling it over a network. Keeps at most 256 MiB, and frees the
/// oldest unused blocks for new ones. Not thread-safe.
class ResultBuffers {
 public:
  /// Returns an uninitialized contiguous tensor.
  at::Tensor make(const Shape& shape, const at::TensorOptions& options);

 private:
  struct Block {
    std::shared_ptr<void> memory;
    size_t bytes;
  };
  std::deque<Block> blocks_;  ///< oldest first
  size_t cached_bytes_ = 0;
};

}  // namespace tessera::detail
