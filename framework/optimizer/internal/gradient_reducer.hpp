#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/framework/tensor/internal/bucket.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>

namespace tessera::detail {

/// Megabytes of gradients that travel together unless it is said otherwise, as
/// DistributedDataParallel's bucket_cap_mb has it.
inline constexpr double default_bucket_cap_mb = 25;
/// A megabyte of these is 2^20 bytes, as it is there.
inline constexpr double bytes_per_megabyte = 1 << 20;

/// What the reductions of one step took, in seconds.
struct ReductionTimes {
  double total = 0;      ///< from where they could begin to where they were found done
  double blocked = 0;    ///< the part of the total that the step waited for them
  int64_t messages = 0;  ///< all-reduces of several gradients together
  double bytes = 0;      ///< size of each device's gradients
  /// The share that the backward pass hid.
  double hidden() const { return total > 0 ? 1 - blocked / total : 0; }
};

/// Sums gradients over the processes of their meshes while the backward pass goes on
/// (DistributedDataParallel's Reducer): those that need nothing but an all-reduce are collected,
/// in the order in which they get ready, into buckets, each of which begins as soon as it is full;
/// the first of a step is full at a megabyte, so that something travels early. Buckets follow from
/// shapes, layouts and the order of ready() alone, which every process of a mesh shares. Gradients
/// on meshes that one process holds, and those that go straight into shards, are left as they are.
class GradientReducer {
 public:
  GradientReducer() = default;
  ~GradientReducer() { reset(); }
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Sets the size of a bucket in megabytes of 2^20 bytes; 0: every gradient travels by itself.
  /// Throws ConfigError for a negative number.
  void set_bucket_cap_mb(double megabytes);

  /// Whether a gradient lies on a mesh of several processes: others are not looked at.
  static bool concerns(const DTensor& gradient);
  /// Takes the gradient of the variable `path`, which is to be brought to `form`, and begins the
  /// reduction of a bucket that it fills. A gradient already seen in this step is ignored.
  /// Collective.
  void ready(const std::string& path, const DTensor& gradient, const ShardingPtr& form);
  /// Begins what is left and waits for everything: the gradients taken are resolved, in all their
  /// handles. Collective. Throws CommError.
  void finish();
  /// Adds to the log of this thread, if there is one, what the gradient's reduction would be by
  /// itself. Nothing for a gradient that was not taken.
  void log(const DTensor& gradient) const;
  /// Ends the step: forgets the gradients, having waited for reductions under way.
  void reset() noexcept;

  /// The path of a variable whose gradient was infinite or no number in this process's own addends,
  /// before any reduction: the first that was found since the last call, in whatever steps; empty
  /// if none was. Of the gradients that travel together it is the one nearest to the loss. Those on
  /// GPUs are known two steps later, or at once where `all` are to be waited for.
  std::string take_non_finite(bool all = false);

  /// What the reductions of the last step took that finish() ended.
  const ReductionTimes& last_times() const { return last_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    explicit Open(BufferPool& pool) : bucket(pool) {}
    Bucket bucket;
    std::vector<std::string> paths = {};
    Clock::time_point started = {}, ended = {};
    bool over = false;
  };
  using OpenPtr = std::unique_ptr<Open>;

  void start(OpenPtr open);
  void note_done();
  void end(Open& open);
  void check_finite(const Open& open);
  void check_on_gpus(const std::vector<std::string>& paths, const std::vector<at::Tensor>& addends);
  void note_non_finite(const std::string& path);

  double cap_bytes_ = default_bucket_cap_mb * bytes_per_megabyte;
  BufferPool pool_;
  /// Gradients of this step by identity, and what a log has of them; null if not taken.
  std::unordered_map<uint64_t, std::unique_ptr<CommEntry>> seen_;
  std::vector<OpenPtr> filling_, started_;
  ReductionTimes times_, last_;
  std::string non_finite_;  ///< path of a variable; empty for none
  /// The largest numbers of addends on GPUs, on their way to the host.
  struct Late {
    int64_t step;
    std::vector<std::string> paths;
    Download largest;
  };
  std::deque<Late> late_;
  int64_t steps_ = 0;
};

}  // namespace tessera::detail
