#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// A value in the blocks of another: block b is make(b).
template <class Make>
DTensor made_blocks(const DTensor& like, const Make& make) {
  Blocks blocks;
  for (size_t b = 0; b < like.blocks().size(); ++b) blocks.push_back(make(b));
  return DTensor(like.sharding(), std::move(blocks));
}

/// Subtracts factor · step, which lies in the same blocks, in place.
inline void subtract(const DTensor& from, const DTensor& step, double factor) {
  for (size_t b = 0; b < from.blocks().size(); ++b) {
    from.blocks()[b].sub_(step.blocks()[b], factor);
  }
}

}  // namespace tessera::detail
