#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/optimizer/optimizer_options.hpp>
#include <tessera/framework/tensor/internal/bucket.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>

namespace tessera::detail {

/// Bytes of a megabyte in bucket sizes, 2^20 as in PyTorch.
inline constexpr double bytes_per_megabyte = 1 << 20;

/// Statistics of the reductions of one step; times in seconds.
struct ReductionTimes {
  double total = 0;      ///< summed time of the reductions, until they were found done
  double blocked = 0;    ///< the part of the total during which the step waited
  int64_t messages = 0;  ///< number of reductions, one per bucket
  double bytes = 0;      ///< bytes of gradients per device
  /// Returns the fraction of the time that overlapped with the backward pass.
  double hidden() const { return total > 0 ? 1 - blocked / total : 0; }
};

/// Reduces gradients during the backward pass, so that a device holds a gradient in the layout of
/// its update and the partial sums of few others. Between processes, gradients that need only an
/// all-reduce, or only a reduce-scatter, are collected into buckets in the order of ready(), as by
/// DistributedDataParallel's Reducer; the reduction of a bucket starts when it is full. The first
/// bucket of a step is full at one megabyte, so that communication starts early; at most two
/// reductions run at a time. Buckets depend only on shapes, layouts and the order of ready(), which
/// are the same on all processes of a mesh. Other gradients are reduced by ready() itself. A
/// planned step forms the same buckets, of values without blocks, and notes what they hold.
class GradientReducer {
 public:
  GradientReducer() = default;
  ~GradientReducer() { reset(); }
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Sets the bucket size in megabytes of 2^20 bytes; 0: each gradient is reduced by itself. Throws
  /// ConfigError for a negative number.
  void set_bucket_cap_mb(double megabytes);

  /// Takes the gradient of a variable, to be resharded to the layout of `target`. Reduces it, or
  /// adds it to a bucket and starts the reduction of that if it is full. Ignores a gradient already
  /// seen in this step, and a row-sparse one. Collective.
  void ready(const Variable& variable, const DTensor& gradient, const ShardingPtr& target);
  /// Reshards a gradient to which others will be added to `target`, a layout in which it may still
  /// be a partial sum, to be reduced over the remaining dimensions with them. Ignores a gradient
  /// already scattered in this step. Collective.
  void scatter(const Variable& variable, const DTensor& gradient, const ShardingPtr& target);
  /// Starts the remaining buckets and waits for all: afterwards the gradients taken are resolved,
  /// in all their handles. Collective. Throws CommError.
  void finish();
  /// Adds to this thread's comm log, if any, the gradient's reduction as if it ran by itself. Does
  /// nothing for a gradient that was not taken.
  void log(const DTensor& gradient) const;
  /// Ends the step: waits for running reductions and forgets the gradients.
  void reset() noexcept;

  /// Returns the path of the first variable found since the last call whose gradient was infinite
  /// or NaN in this process's own partial sums, before any reduction; empty if there was none.
  /// Within a bucket it is the gradient nearest to the loss. Gradients on GPUs are reported two
  /// steps later, or, if `all`, at once after waiting for them.
  std::string take_non_finite(bool all = false);

  /// The times of the last step's reductions that finish() ended.
  const ReductionTimes& last_times() const { return last_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct PendingBucket {
    std::unique_ptr<ReductionBucket> bucket;
    std::vector<std::string> paths = {};
    Clock::time_point started = {}, ended = {};
    bool finished = false;
    std::vector<PlannedReduction> planned_end = {};
  };
  using PendingBucketPtr = std::unique_ptr<PendingBucket>;

  /// Returns a new bucket that the gradient fits; null if none does.
  std::unique_ptr<ReductionBucket> new_bucket(const DTensor& gradient, const ShardingPtr& target);
  void reduce_now(const std::string& path, const DTensor& gradient, const ShardingPtr& target);
  void start(PendingBucketPtr open);
  void record_finished();
  void end_oldest();
  void check_finite(const PendingBucket& open);
  void check_blocks(const std::string& path, const DTensor& gradient);
  void check_on_gpus(const std::vector<std::string>& paths, const std::vector<at::Tensor>& blocks);
  void record_non_finite(const std::string& path);

  double cap_bytes_ = default_bucket_cap_mb * bytes_per_megabyte;
  ResultBuffers buffers_;
  struct Seen {
    std::vector<CommEntry> entries = {};  ///< what its reduction logs
    bool scattered = false, reduced = false;
  };
  std::unordered_map<uint64_t, Seen> seen_;  ///< this step's gradients, by their ids
  std::vector<PendingBucketPtr> open_;
  std::deque<PendingBucketPtr> started_;  ///< the oldest first
  Clock::time_point previous_end_ = {};   ///< the end of the last reduction that ended
  ReductionTimes times_, last_;
  std::string non_finite_;  ///< path of a variable with a non-finite gradient; empty if none
  /// Maximum norms of partial sums on GPUs, being copied to the host.
  struct PendingCheck {
    int64_t step;
    std::vector<std::string> paths;
    Download largest;
  };
  std::deque<PendingCheck> pending_checks_;
  int64_t steps_ = 0;
};

}  // namespace tessera::detail
