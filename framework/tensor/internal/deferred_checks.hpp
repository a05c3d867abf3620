#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace tessera::detail {

/// An asynchronous copy of a GPU tensor to pinned host memory, queued after this thread's work on
/// that GPU. A host tensor is kept without a copy.
class Download {
 public:
  explicit Download(const at::Tensor& tensor);
  /// Returns the host tensor; waits until it has arrived.
  const at::Tensor& get();
  bool is_late() const { return arrived_.has_value(); }

 private:
  at::Tensor host_;
  std::optional<c10::Event> arrived_;
};

/// The outcome of a passed check on a GPU.
constexpr int64_t check_passed = std::numeric_limits<int64_t>::max();

/// Returns an int64 on a GPU, initially `check_passed`, that a kernel lowers (atomic min) to the
/// position of an invalid element. No step waits for it: when this thread next reads from a GPU,
/// `raise` is called with the position and throws.
at::Tensor deferred_check(c10::Device gpu, std::function<void(int64_t position)> raise);

/// This thread's deferred checks, with their outcomes on the way to the host.
class DeferredChecks {
 public:
  /// Takes the checks deferred since the last call. Queues the copies of their outcomes after this
  /// thread's work on its GPUs.
  static DeferredChecks take();
  /// Waits for the copies and throws the error of the first failed check.
  void raise();

 private:
  struct GpuChecks {
    Download outcomes;
    std::vector<std::function<void(int64_t)>> checks;
  };
  std::vector<GpuChecks> gpus_;
};

/// Waits for this thread's deferred checks and throws the error of the first failed one.
void raise_deferred_checks();

}  // namespace tessera::detail
