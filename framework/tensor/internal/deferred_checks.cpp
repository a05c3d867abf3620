#include <tessera/framework/tensor/internal/deferred_checks.hpp>

#include <unordered_map>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {
namespace {

/// Limit of deferred checks; one more makes them checked at once, since operations outside of steps
/// may run for long before a read.
constexpr size_t max_checks = 64;

/// This thread's checks on one GPU that have not been taken yet.
struct Open {
  at::Tensor found;  ///< one outcome for each of max_checks; the same tensor in every step
  std::vector<std::function<void(int64_t)>> checks;
};

using OpenChecks = std::unordered_map<c10::Device, Open>;

OpenChecks& open_checks() {
  static thread_local OpenChecks checks;
  return checks;
}

}  // namespace

at::Tensor deferred_check(c10::Device device, std::function<void(int64_t position)> raise) {
  Open& open = open_checks()[device];
  if (open.checks.size() == max_checks) raise_deferred_checks();
  if (!open.found.defined()) {
    open.found = at::full({int64_t{max_checks}}, check_passed,
                          at::TensorOptions().dtype(at::kLong).device(device));
  }
  open.checks.push_back(std::move(raise));
  return open.found[static_cast<int64_t>(open.checks.size()) - 1];
}

DeferredChecks DeferredChecks::take() {
  DeferredChecks taken;
  for (auto& [device, open] : open_checks()) {
    if (open.checks.empty()) continue;
    const auto count = static_cast<int64_t>(open.checks.size());
    taken.gpus_.push_back(
        {Download(open.found.narrow(0, 0, count)), std::exchange(open.checks, {})});
  }
  return taken;
}

void DeferredChecks::raise() {
  for (GpuChecks& gpu : gpus_) {
    const int64_t* const found = gpu.found.get().const_data_ptr<int64_t>();
    for (size_t i = 0; i < gpu.checks.size(); ++i) {
      if (found[i] == check_passed) continue;
      // Checks deferred before the error do not concern what follows it.
      open_checks().clear();
      gpu.checks[i](found[i]);
    }
  }
}

void raise_deferred_checks() { DeferredChecks::take().raise(); }

Download::Download(const at::Tensor& tensor) : host_(tensor) {
  if (tensor.is_cpu()) return;
  const c10::DeviceGuard guard(tensor.device());
  const auto options = tensor.options().device(at::kCPU).pinned_memory(true);
  host_ = at::empty(tensor.sizes(), options).copy_(tensor, /*non_blocking=*/true);
  arrived_.emplace(tensor.device().type());
  arrived_->record(gpu(tensor.device().index()).compute());
}

const at::Tensor& Download::get() {
  if (arrived_ && !arrived_->query()) {
    const ProfileSpan span(SpanKind::wait, "GPU");
    arrived_->synchronize();
  }
  arrived_.reset();
  return host_;
}

}  // namespace tessera::detail
