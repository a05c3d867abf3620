#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::detail {

// The bytes of a collective per member, as in CommEntry::bytes.

inline int64_t tensor_bytes(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

/// Returns the bytes of a reduction per member: the member's input.
inline int64_t reduced_bytes(const std::vector<at::Tensor>& inputs) {
  return inputs.empty() ? 0 : tensor_bytes(inputs[0]);
}

/// Returns the bytes of an all-gather per member: the gathered result.
inline int64_t gathered_bytes(int64_t axis, const std::vector<int64_t>& counts,
                              const std::vector<at::Tensor>& inputs) {
  if (inputs.empty()) return 0;
  int64_t bytes = inputs[0].element_size();
  for (int64_t a = 0; a < inputs[0].dim(); ++a) {
    if (a != axis) bytes *= inputs[0].size(a);
  }
  int64_t extent = 0;
  for (int64_t count : counts) extent += count;
  return bytes * extent;
}

/// Returns the bytes of an all-to-all per member: all that the member sends.
inline int64_t sent_bytes(const std::vector<std::vector<at::Tensor>>& send) {
  int64_t bytes = 0;
  if (send.empty()) return bytes;
  for (const at::Tensor& block : send[0]) {
    if (block.defined()) bytes += tensor_bytes(block);
  }
  return bytes;
}

}  // namespace tessera::detail
