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
struct PendingChecks {
  at::Tensor outcomes;  ///< one outcome for each of max_checks; the same tensor in every step
  std::vector<std::function<void(int64_t)>> checks;
};

using ChecksByDevice = std::unordered_map<c10::Device, PendingChecks>;

ChecksByDevice& pending_checks() {
  static thread_local ChecksByDevice checks;
  return checks;
}

}  // namespace

at::Tensor deferred_check(c10::Device device, std::function<void(int64_t position)> raise) {
  PendingChecks& pending = pending_checks()[device];
  if (pending.checks.size() == max_checks) raise_deferred_checks();
  if (!pending.outcomes.defined()) {
    pending.outcomes = at::full({int64_t{max_checks}}, check_passed,
                                at::TensorOptions().dtype(at::kLong).device(device));
  }
  pending.checks.push_back(std::move(raise));
  return pending.outcomes[static_cast<int64_t>(pending.checks.size()) - 1];
}

DeferredChecks DeferredChecks::take() {
  DeferredChecks taken;
  for (auto& [device, pending] : pending_checks()) {
    if (pending.checks.empty()) continue;
    const auto count = static_cast<int64_t>(pending.checks.size());
    taken.gpus_.push_back(
        {Download(pending.outcomes.narrow(0, 0, count)), std::exchange(pending.checks, {})});
  }
  return taken;
}

void DeferredChecks::raise() {
  for (GpuChecks& gpu : gpus_) {
    const int64_t* const outcomes = gpu.outcomes.get().const_data_ptr<int64_t>();
    for (size_t i = 0; i < gpu.checks.size(); ++i) {
      if (outcomes[i] == check_passed) continue;
      // Checks deferred before the error do not concern what follows it.
      pending_checks().clear();
      gpu.checks[i](outcomes[i]);
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
