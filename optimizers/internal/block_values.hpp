#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/optimizers/internal/list_optimizer.hpp>

namespace tessera::detail {

/// Returns a value with the sharding of `like`, whose block b is make(b).
template <class Make>
DTensor with_blocks(const DTensor& like, const Make& make) {
  Blocks blocks;
  for (size_t b = 0; b < like.blocks().size(); ++b) blocks.push_back(make(b));
  return DTensor(like.sharding(), std::move(blocks));
}

/// Returns f(a, b) blockwise, for values with the same shardings; f takes tensors and BlockLists.
template <class F>
std::vector<DTensor> computed(const std::vector<DTensor>& a, const std::vector<DTensor>& b,
                              const F& f) {
  const std::vector<at::Tensor> first = blocks_of(a), second = blocks_of(b);
  std::vector<at::Tensor> result(first.size());
  for_each_list(
      first, [&](size_t i) { result[i] = f(first[i], second[i]); },
      [&](const std::vector<size_t>& indices) {
        const BlockList list =
            f(BlockList(select(first, indices)), BlockList(select(second, indices)));
        for (size_t i = 0; i < indices.size(); ++i) result[indices[i]] = list.blocks()[i];
      });
  return values_of(a, result);
}

/// Subtracts factor · step in place; both values have the same sharding.
inline void subtract(const DTensor& from, const DTensor& step, double factor) {
  for (size_t b = 0; b < from.blocks().size(); ++b) {
    from.blocks()[b].sub_(step.blocks()[b], factor);
  }
}

}  // namespace tessera::detail
