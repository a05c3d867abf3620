#include <tessera/framework/data/internal/pinned_batches.hpp>

#include <ATen/ATen.h>

namespace tessera::detail {

at::Tensor empty_batch(const Shape& shape, at::ScalarType dtype) {
  const bool pinned = thread_state().pinned_batches;
  return at::empty(shape, at::TensorOptions().dtype(dtype).pinned_memory(pinned));
}

}  // namespace tessera::detail
