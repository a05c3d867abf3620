#pragma once

#include <cstddef>
#include <deque>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// Memory of large results, used again once nobody holds it: a page that is touched for the first
/// time costs more than to fill it over a network. Keeps 256 MiB at most: the oldest unused blocks
/// go for others. For one thread.
class ResultBuffers {
 public:
  /// A contiguous tensor of any content.
  at::Tensor make(const Shape& shape, const at::TensorOptions& options);

 private:
  struct Block {
    std::shared_ptr<void> memory;
    size_t bytes;
  };
  std::deque<Block> blocks_;  ///< oldest first
  size_t kept_bytes_ = 0;
};

}  // namespace tessera::detail
