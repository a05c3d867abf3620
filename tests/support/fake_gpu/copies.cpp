#include <algorithm>
#include <atomic>
#include <cstring>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "tests/support/fake_gpu/counters.hpp"
#include "tests/support/fake_gpu/kernel.hpp"
#include "tests/support/fake_gpu/memory.hpp"
#include "tests/support/fake_gpu/pinned_memory.hpp"
#include "tests/support/fake_gpu/recording.hpp"
#include "tests/support/fake_gpu/streams.hpp"

namespace tessera::test::fake_gpu {

namespace {

/// Whether a copy moves bytes unchanged, so that neither end needs a temporary tensor.
bool is_plain(const at::Tensor& from, const at::Tensor& to) {
  if (from.scalar_type() != to.scalar_type() || from.sizes() != to.sizes()) return false;
  return (from.is_contiguous() && to.is_contiguous()) ||
         (from.strides() == to.strides() && from.is_non_overlapping_and_dense());
}

/// Queues a copy between pinned host memory and a GPU, to run when the stream reaches it.
void copy_late(c10::Stream stream, void* to, const void* from, size_t bytes, const void* pinned,
               std::atomic<int64_t>& count) {
  if (records(stream)) {
    keep(
        stream, "copy", [=] { std::memcpy(to, from, bytes); }, pinned);
    return;
  }
  ++count;
  enqueue(stream, [=, held = hold_pinned(pinned)] {
    std::memcpy(to, from, bytes);
    return true;
  });
}

void upload(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const void* const source = from.const_data_ptr();
  // For conversions and non-contiguous tensors CUDA goes through pageable memory.
  const bool pinned = is_plain(from, to) && is_pinned(source);
  if (pinned && non_blocking) {
    copy_late(current_stream(to.device().index()), inside(to.mutable_data_ptr()), source,
              from.nbytes(), source, counts().pinned_uploads);
    return;
  }
  ++(pinned ? counts().pinned_uploads : counts().pageable_uploads);
  count_wait(pinned ? "blocking upload" : "pageable upload");
  const Kernel kernel(to.device().index(), "upload");
  Aliases().of(to).copy_(from);
}

void download(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (non_blocking && is_plain(from, to) && is_pinned(to.const_data_ptr())) {
    void* const target = to.mutable_data_ptr();
    copy_late(current_stream(from.device().index()), target, inside(from.const_data_ptr()),
              from.nbytes(), target, counts().downloads);
    return;
  }
  ++counts().downloads;
  count_wait("download");
  const Kernel kernel(from.device().index(), "download");
  to.copy_(Aliases().of(from));
}

void move(const at::Tensor& from, const at::Tensor& to) {
  if (from.device() == to.device()) {
    run_kernel(to.device(), "copy", {from, to}, [](Values& values) {
      values[1].toTensor().copy_(values[0].toTensor());
      values.clear();
    });
    return;
  }
  // Each end's current stream waits for the other's.
  const auto [first, last] = std::minmax({from.device().index(), to.device().index()});
  for (c10::DeviceIndex gpu : {first, last}) {
    refuse_on_recording(current_stream(gpu), "copy between GPUs");
  }
  finish(current_stream(last));
  const Kernel one(first, "copy between GPUs");
  const Kernel other(last, "copy between GPUs");
  ++counts().moves;
  Aliases aliases;
  aliases.of(to).copy_(aliases.of(from));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  const at::Tensor source = from.expand_as(to);
  if (!is_on_gpu(from)) {
    const c10::DeviceGuard guard(to.device());
    upload(source, to, non_blocking);
  } else if (!is_on_gpu(to)) {
    const c10::DeviceGuard guard(from.device());
    download(source, to, non_blocking);
  } else {
    move(source, to);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  ++counts().downloads;
  count_wait("_local_scalar_dense");
  const Kernel kernel(self.device().index(), "_local_scalar_dense");
  return at::_local_scalar_dense(Aliases().of(self));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &local_scalar_dense);
}

}  // namespace
}  // namespace tessera::test::fake_gpu
