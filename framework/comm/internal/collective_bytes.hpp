#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

// The bytes of a collective per member, as in CommEntry::bytes.

inline int64_t tensor_bytes(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

/// Returns the bytes of a reduction per member: those of an input.
inline int64_t reduced_bytes(const std::vector<at::Tensor>& inputs) {
  for (const at::Tensor& input : inputs) {
    if (input.defined()) return tensor_bytes(input);
  }
  return 0;
}

/// Returns the bytes of a reduce-scatter per member: the member's inputs.
inline int64_t scattered_bytes(std::span<const ScatteredValue> values) {
  int64_t bytes = 0;
  for (const ScatteredValue& value : values) bytes += reduced_bytes(value.inputs);
  return bytes;
}

/// Returns the bytes of an all-gather per member: the gathered results.
inline int64_t gathered_bytes(std::span<const GatheredValue> values) {
  int64_t all = 0;
  for (const GatheredValue& value : values) {
    if (value.inputs.empty()) continue;
    const at::Tensor& first = value.inputs[0];
    int64_t bytes = first.element_size();
    for (int64_t a = 0; a < first.dim(); ++a) {
      if (a != value.axis) bytes *= first.size(a);
    }
    int64_t extent = 0;
    for (int64_t count : value.counts) extent += count;
    all += bytes * extent;
  }
  return all;
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

/// Returns the bytes of all messages.
inline int64_t message_bytes(const std::vector<Message>& messages) {
  int64_t bytes = 0;
  for (const Message& message : messages) bytes += tensor_bytes(message.tensor);
  return bytes;
}

}  // namespace tessera::detail
