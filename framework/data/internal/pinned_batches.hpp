#pragma once

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera::detail {

/// While alive and if `pinned`, datasets on this thread write batches to pinned memory, from which
/// GPUs copy without a second copy on the host. GPUs must then have been loaded.
class PinnedBatchesScope {
 public:
  explicit PinnedBatchesScope(bool pinned) : value_(thread_state().pinned_batches, pinned) {}

 private:
  ScopedValue<bool> value_;
};

/// Allocates host memory for a batch, pinned inside a PinnedBatchesScope.
at::Tensor empty_batch(const Shape& shape, at::ScalarType dtype);

}  // namespace tessera::detail
