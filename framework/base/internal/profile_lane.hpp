#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/profile.hpp>

namespace tessera::detail {

/// A span; times in nanoseconds since the profile began.
struct SpanRecord {
  std::string_view name;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = 0;
  uint32_t depth = 0;  ///< number of enclosing spans
  SpanKind kind = SpanKind::op;
  /// marks of the GPU clock; resolved to times when the profile is read
  int64_t gpu_begin = no_gpu, gpu_end = no_gpu;

  static constexpr int64_t no_gpu = -1;
  bool on_gpu() const { return gpu_begin != no_gpu && gpu_end != no_gpu; }
  int64_t gpu_time() const { return on_gpu() ? gpu_end - gpu_begin : 0; }
};

/// State shared by all threads of a profile.
struct ProfileClock {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::atomic<int64_t> remaining{0};  ///< number of spans that may still be recorded
  std::atomic<int64_t> left_out{0};

  int64_t now() const {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  }
  /// Reserves up to `count` spans; returns how many.
  int64_t reserve(int64_t count);
};

/// The spans of one thread, ordered by begin. Only that thread writes them.
class ProfileLane {
 public:
  explicit ProfileLane(std::shared_ptr<ProfileClock> clock);

  bool begin(SpanKind kind, std::string_view name, int64_t bytes) noexcept;
  void end() noexcept;
  /// Frees the spans; the thread may still call end().
  void clear();

  /// Returns the spans that began before `limit`, truncated to it.
  std::vector<SpanRecord> spans(int64_t limit) const;
  bool is_main() const { return is_main_; }

 private:
  std::shared_ptr<ProfileClock> clock_;
  bool is_main_ = false;
  int64_t reserved_ = 0;
  mutable std::mutex mutex_;
  std::deque<SpanRecord> spans_;
  std::vector<size_t> open_;
};

/// The data of a profile.
struct Recording {
  uint64_t number = 0;
  std::shared_ptr<ProfileClock> clock = std::make_shared<ProfileClock>();
  std::atomic<int64_t> limit{std::numeric_limits<int64_t>::max()};
  std::vector<std::shared_ptr<ProfileLane>> lanes;  ///< one per thread that had a span

  int64_t end() const { return std::min(limit.load(), clock->now()); }
};

/// The spans of one thread, copied out of a profile.
struct LaneSpans {
  std::string name;  ///< display name of the thread
  std::vector<SpanRecord> spans;
};

/// Rows and totals of a set of threads, in seconds.
struct Accounts {
  std::vector<Profile::Row> rows;
  Profile::Totals totals;
};
Accounts account(const std::vector<LaneSpans>& lanes);

/// Returns the threads' spans as Chrome trace events. Times count from the origin of the machine's
/// steady clock, in which the profile began at `start`: traces of several processes of a machine
/// fit together.
std::string trace_text(const std::vector<LaneSpans>& lanes,
                       std::chrono::steady_clock::time_point start, int64_t left_out, int64_t end);

}  // namespace tessera::detail
