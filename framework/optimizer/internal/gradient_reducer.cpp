#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/relayout_step.hpp>
#include <tessera/framework/tensor/internal/scatter_bucket.hpp>

namespace tessera::detail {
namespace {

constexpr double first_bucket_bytes = 1 * bytes_per_megabyte;

/// Most buckets whose reductions run at the same time: more would hold more partial sums.
constexpr size_t max_in_flight = 2;

/// Whether other processes hold blocks of the gradient, or would, if a step is planned.
bool is_distributed(const DTensor& gradient) {
  if (!is_abstract()) return !gradient.mesh().is_local();
  return planned_tensors() && planned_tensors()->between_processes;
}

/// Notes what a planned reduction does to memory.
void note_planned(const std::vector<PlannedReduction>& changes) {
  std::vector<PlannedReduction>& all = planned_tensors()->reductions;
  all.insert(all.end(), changes.begin(), changes.end());
}

}  // namespace

void GradientReducer::set_bucket_cap_mb(double megabytes) {
  if (!(megabytes >= 0)) {
    throw ConfigError("bucket_cap_mb", "bucket_cap_mb must be at least 0", str(megabytes),
                      "use 25, or 0 to reduce each gradient by itself");
  }
  cap_bytes_ = megabytes * bytes_per_megabyte;
}

void GradientReducer::ready(const Variable& variable, const DTensor& gradient,
                            const ShardingPtr& target) {
  const std::string& path = variable.path();
  record_finished();
  Seen& seen = seen_[gradient.id()];
  if (std::exchange(seen.reduced, true)) return;
  if (!is_distributed(gradient)) return reduce_now(path, gradient, target);
  const bool rows = gradient.is_row_sparse() || !(gradient.mesh() == target->mesh());
  auto it = rows ? open_.end()
                 : std::find_if(open_.begin(), open_.end(), [&](const PendingBucketPtr& open) {
                     return open->bucket->fits(gradient, target);
                   });
  std::unique_ptr<ReductionBucket> added;
  if (!rows && it == open_.end()) added = new_bucket(gradient, target);
  if (added)
    it = open_.insert(it,
                      std::make_unique<PendingBucket>(PendingBucket{.bucket = std::move(added)}));
  if (it == open_.end() || !(*it)->bucket->is_checked()) check_blocks(path, gradient);
  if (it == open_.end()) return reduce_now(path, gradient, target);
  seen.entries.push_back((*it)->bucket->add(gradient, target, variable.spec().memory_order));
  (*it)->paths.push_back(path);
  const double limit = times_.messages == 0 ? first_bucket_bytes : cap_bytes_;
  if ((*it)->bucket->bytes() < std::min(limit, cap_bytes_)) return;
  PendingBucketPtr full = std::move(*it);
  open_.erase(it);
  start(std::move(full));
}

std::unique_ptr<ReductionBucket> GradientReducer::new_bucket(const DTensor& gradient,
                                                             const ShardingPtr& target) {
  std::unique_ptr<ReductionBucket> bucket = std::make_unique<Bucket>(buffers_);
  if (bucket->fits(gradient, target)) return bucket;
  bucket = std::make_unique<ScatterBucket>();
  return bucket->fits(gradient, target) ? std::move(bucket) : nullptr;
}

void GradientReducer::scatter(const Variable& variable, const DTensor& gradient,
                              const ShardingPtr& target) {
  if (std::exchange(seen_[gradient.id()].scattered, true)) return;
  if (is_distributed(gradient)) check_blocks(variable.path(), gradient);
  reduce_now(variable.path(), gradient, target);
}

/// Checks this process's own partial sums of a gradient that is reduced by itself.
void GradientReducer::check_blocks(const std::string& path, const DTensor& gradient) {
  std::vector<at::Tensor> on_gpu;
  for (const at::Tensor& stored : gradient.stored_blocks()) {
    if (!stored.defined()) continue;
    const at::Tensor block = stored.is_sparse() ? stored._values() : stored;
    if (!block.is_cpu()) {
      on_gpu.push_back(block);
    } else if (!all_finite(block)) {
      record_non_finite(path);
    }
  }
  check_on_gpus(std::vector(on_gpu.size(), path), on_gpu);
}

/// Moves a gradient to the target's layout, in all its handles, so that its partial sums are
/// released.
void GradientReducer::reduce_now(const std::string& path, const DTensor& gradient,
                                 const ShardingPtr& target) {
  // The rows of a table are reduced by the update.
  if (gradient.is_row_sparse() || !(gradient.mesh() == target->mesh())) return;
  CommLog log;
  const CommLogScope logged(log);
  const CommLabel label(path);
  const ShardingPtr reduced =
      intern(gradient.shape(), gradient.dtype(), target->layout, target->groups);
  gradient.replace(relayout_to(gradient, reduced));
  std::vector<CommEntry>& entries = seen_.at(gradient.id()).entries;
  entries.insert(entries.end(), log.entries().begin(), log.entries().end());
}

void GradientReducer::start(PendingBucketPtr open) {
  const std::vector<std::string>& paths = open->paths;
  // Errors name the range of gradients, which are in the order of the backward pass.
  const std::string range = paths.size() == 1 ? paths[0] : str(paths.front(), " to ", paths.back());
  const CommLabel label(range);
  // At the same point of the backward pass on all processes.
  while (started_.size() >= max_in_flight) end_oldest();
  open->started = Clock::now();
  started_.push_back(std::move(open));
  PendingBucket& added = *started_.back();
  times_.bytes += added.bucket->bytes();
  ++times_.messages;
  if (planned_tensors()) {
    PlannedReductions planned = added.bucket->planned_memory();
    note_planned(planned.at_start);
    added.planned_end = std::move(planned.at_end);
  }
  added.bucket->start();
}

/// Records the end times of finished reductions. They run one after the other, so polling in order
/// suffices.
void GradientReducer::record_finished() {
  for (const PendingBucketPtr& open : started_) {
    if (open->finished) continue;
    if (!open->bucket->done()) return;
    open->finished = true;
    open->ended = Clock::now();
  }
}

std::string GradientReducer::take_non_finite(bool all) {
  constexpr int64_t readback_delay = 2;
  for (;
       !pending_checks_.empty() && (all || pending_checks_.front().step + readback_delay <= steps_);
       pending_checks_.pop_front()) {
    PendingCheck& check = pending_checks_.front();
    const double* const largest = check.largest.get().const_data_ptr<double>();
    for (size_t i = 0; i < check.paths.size(); ++i) {
      if (!std::isfinite(largest[i])) record_non_finite(check.paths[i]);
    }
  }
  return std::exchange(non_finite_, {});
}

/// Starts copying the maximum norm of each block, NaN if it contains NaN, to the host; read later.
void GradientReducer::check_on_gpus(const std::vector<std::string>& paths,
                                    const std::vector<at::Tensor>& blocks) {
  for (const std::vector<size_t>& indices : group_by_device_and_dtype(blocks)) {
    const std::vector<at::Tensor> list = select(blocks, indices);
    const c10::DeviceGuard guard(list[0].device());
    const std::vector<at::Tensor> largest =
        at::_foreach_norm(list, std::numeric_limits<double>::infinity());
    std::vector<std::string> group_paths;
    for (size_t b : indices) group_paths.push_back(paths[b]);
    pending_checks_.push_back(
        {steps_, std::move(group_paths), Download(at::stack(largest).to(at::kDouble))});
  }
}

void GradientReducer::record_non_finite(const std::string& path) {
  if (non_finite_.empty()) non_finite_ = path;
}

void GradientReducer::check_finite(const PendingBucket& open) {
  if (!open.bucket->is_checked()) return;
  if (on_gpus(open.bucket->values()[0].mesh())) {
    std::vector<std::string> paths;
    std::vector<at::Tensor> blocks;
    for (const auto& [value, block] : open.bucket->addends()) {
      paths.push_back(open.paths[value]);
      blocks.push_back(block);
    }
    return check_on_gpus(paths, blocks);
  }
  const std::optional<size_t> bad = open.bucket->find_non_finite();
  if (bad) record_non_finite(open.paths[*bad]);
}

/// Waits for the oldest running reduction and resolves its gradients.
void GradientReducer::end_oldest() {
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  PendingBucket& open = *started_.front();
  check_finite(open);
  if (planned_tensors()) note_planned(open.planned_end);
  const Clock::time_point before = Clock::now();
  open.bucket->finish();
  const Clock::time_point after = Clock::now();
  if (!open.finished) open.ended = after;
  times_.blocked += seconds(after - before);
  times_.total += seconds(open.ended - std::max(open.started, previous_end_));
  previous_end_ = open.ended;
  started_.pop_front();
}

void GradientReducer::finish() {
  for (PendingBucketPtr& open : std::exchange(open_, {})) start(std::move(open));
  record_finished();
  while (!started_.empty()) end_oldest();
  last_ = std::exchange(times_, {});
  ++steps_;
}

void GradientReducer::log(const DTensor& gradient) const {
  CommLog* log = CommLogScope::current();
  const auto found = seen_.find(gradient.id());
  if (!log || found == seen_.end()) return;
  for (const CommEntry& entry : found->second.entries) log->add(entry);
}

void GradientReducer::reset() noexcept {
  for (const PendingBucketPtr& open : started_) {
    try {
      // No reduction may still write memory or report an error when the next step begins.
      open->bucket->wait();
    } catch (const std::exception&) {
      continue;
    }
  }
  open_.clear();
  started_.clear();
  seen_.clear();
  times_ = {};
  previous_end_ = {};
}

}  // namespace tessera::detail
