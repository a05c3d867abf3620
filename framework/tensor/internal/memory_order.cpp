#include <tessera/framework/tensor/internal/memory_order.hpp>

#include <ATen/ATen.h>

namespace tessera::detail {

bool is_in_order(const at::Tensor& tensor, const MemoryOrder& order) {
  return order.empty() ? tensor.is_contiguous() : tensor.permute(order).is_contiguous();
}

at::Tensor copy_in_order(const at::Tensor& tensor, const MemoryOrder& order) {
  if (order.empty()) return tensor.clone(at::MemoryFormat::Contiguous);
  return at::empty_permuted(tensor.sizes(), order, tensor.options()).copy_(tensor);
}

at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& tensor) {
  // Strides of axes of extent 1 may differ although the order does not.
  if (tensor.strides() == like.strides()) return tensor;
  if (tensor.is_contiguous() && like.is_contiguous()) return tensor;
  return at::empty_like(like).copy_(tensor);
}

at::Tensor view_in_order(const at::Tensor& vector, at::IntArrayRef shape,
                         const MemoryOrder& order) {
  if (order.empty()) return vector.view(shape);
  std::vector<int64_t> extents, axes(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    extents.push_back(shape[size_t(order[i])]);
    axes[size_t(order[i])] = static_cast<int64_t>(i);
  }
  return vector.view(extents).permute(axes);
}

}  // namespace tessera::detail
