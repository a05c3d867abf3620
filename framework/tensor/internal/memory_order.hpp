#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tessera::detail {

/// The axes of a tensor in the order of its memory, from the one whose indices are farthest apart
/// to the one whose indices are adjacent; empty for row-major order.
using MemoryOrder = std::vector<int64_t>;

/// Whether the tensor is dense in memory in this order.
bool is_in_order(const at::Tensor& tensor, const MemoryOrder& order);
/// Returns a copy that is dense in memory in this order.
at::Tensor copy_in_order(const at::Tensor& tensor, const MemoryOrder& order);
/// Returns the tensor, or a copy if its memory has another order than that of `like`, which is
/// dense and has the same shape and dtype.
at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& tensor);
/// Returns a view of a vector's elements as a tensor of this shape in this order.
at::Tensor view_in_order(const at::Tensor& vector, at::IntArrayRef shape, const MemoryOrder& order);

}  // namespace tessera::detail
