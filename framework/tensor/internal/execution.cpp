#include <tessera/framework/tensor/internal/execution.hpp>

#include <omp.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/tensor/float32_precision.hpp>

namespace tessera::detail {

const ExecutionContext& ExecutionContext::of(Device device) {
  static const ExecutionContext cpu{c10::Device(c10::kCPU)};
  if (device.type == Device::Type::cpu) return cpu;
  static std::mutex mutex;
  static std::map<int, ExecutionContext> gpus;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = gpus.find(device.index);
  if (found != gpus.end()) return found->second;
  const ExecutionContext context(gpu(device.index).device);
  if (gpus.empty()) apply_float32_precision();
  return gpus.emplace(device.index, context).first->second;
}

namespace {

/// Throws StateError unless at::parallel_for is parallel: compiled without OpenMP, it silently runs
/// on one thread.
bool check_parallel_for() {
  std::atomic<int> chunks{0};
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t, int64_t) { ++chunks; });
  if (chunks < at::get_num_threads() && !at::in_parallel_region()) {
    throw StateError(
        "start", "parallel loops must run on " + std::to_string(at::get_num_threads()) + " threads",
        "fewer threads", "compile Tessera and all code that includes it with -fopenmp");
  }
  return true;
}

}  // namespace

int64_t worker_count() {
  static const bool checked = check_parallel_for();
  return checked ? at::get_num_threads() : 1;
}

void use_one_thread() {
  // The first call in a thread sets its number of threads, which would replace this one.
  static_cast<void>(at::get_num_threads());
  omp_set_num_threads(1);
}

OneThreadIfInvariant::OneThreadIfInvariant() {
  if (!world_size_invariant() || worker_count() == 1) return;
  before_ = omp_get_max_threads();
  omp_set_num_threads(1);
}

OneThreadIfInvariant::~OneThreadIfInvariant() {
  if (before_ > 0) omp_set_num_threads(before_);
}

}  // namespace tessera::detail
