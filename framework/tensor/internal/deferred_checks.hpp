#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace tessera::detail {

/// A copy of a GPU's tensor in pinned memory of the host, on its way there behind what this thread
/// has given the GPU; of a tensor of the host, the tensor.
class Download {
 public:
  explicit Download(const at::Tensor& tensor);
  /// Waits for it, where it is not there yet.
  const at::Tensor& get();
  bool is_late() const { return arrived_.has_value(); }

 private:
  at::Tensor host_;
  std::optional<c10::Event> arrived_;
};

/// What a check on a GPU leaves where nothing is wrong.
constexpr int64_t nothing_wrong = std::numeric_limits<int64_t>::max();

/// A number of int64 on a GPU, `nothing_wrong`, which a kernel lowers to the place of what is
/// wrong. A step does not wait for it: `raise` gets the place, and throws, when this thread next
/// reads from a GPU.
at::Tensor deferred_check(c10::Device gpu, std::function<void(int64_t place)> raise);

/// The checks that this thread has deferred, and what they found on its way to the host.
class DeferredChecks {
 public:
  /// All since the last call. Queues copies behind what this thread has given its GPUs.
  static DeferredChecks take();
  /// Waits for the copies, where they are not there yet, and throws what the first failed check
  /// does.
  void raise();

 private:
  struct OfGpu {
    Download found;
    std::vector<std::function<void(int64_t)>> checks;
  };
  std::vector<OfGpu> gpus_;
};

/// Waits for what this thread has deferred and throws what the first failed check does.
void raise_deferred_checks();

}  // namespace tessera::detail
