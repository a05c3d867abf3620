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
  uint32_t depth = 0;  ///< spans around it
  SpanKind kind = SpanKind::op;
  /// Marks of the GPU's clock, and once the profile is read the times that they stand for.
  int64_t gpu_begin = no_gpu, gpu_end = no_gpu;

  static constexpr int64_t no_gpu = -1;
  bool on_gpu() const { return gpu_begin != no_gpu && gpu_end != no_gpu; }
  int64_t gpu_time() const { return on_gpu() ? gpu_end - gpu_begin : 0; }
};

/// What all threads of a profile share.
struct ProfileClock {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::atomic<int64_t> room{0};  ///< spans that may still be taken
  std::atomic<int64_t> left_out{0};

  int64_t now() const {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  }
  /// Takes up to `count` of the room.
  int64_t take(int64_t count);
};

/// The spans of one thread, in the order in which they began. Written by that thread alone.
class ProfileLane {
 public:
  explicit ProfileLane(std::shared_ptr<ProfileClock> clock);

  bool begin(SpanKind kind, std::string_view name, int64_t bytes) noexcept;
  void end() noexcept;
  /// Gives the memory back; the thread may still end spans.
  void clear();

  /// The spans that began before `limit`, as if none went on after it.
  std::vector<SpanRecord> spans(int64_t limit) const;
  bool is_main() const { return is_main_; }

 private:
  std::shared_ptr<ProfileClock> clock_;
  bool is_main_ = false;
  int64_t room_ = 0;
  mutable std::mutex mutex_;
  std::deque<SpanRecord> spans_;
  std::vector<size_t> open_;
};

/// What a profile records, and where it ended.
struct Recording {
  uint64_t number = 0;
  std::shared_ptr<ProfileClock> clock = std::make_shared<ProfileClock>();
  std::atomic<int64_t> limit{std::numeric_limits<int64_t>::max()};
  std::vector<std::shared_ptr<ProfileLane>> lanes;  ///< one for each thread that had a span

  int64_t end() const { return std::min(limit.load(), clock->now()); }
};

/// What a profile has of one thread.
struct LaneSpans {
  std::string name;  ///< the thread's, for people
  std::vector<SpanRecord> spans;
};

/// The rows and totals of these threads; times in nanoseconds become seconds.
struct Accounts {
  std::vector<Profile::Row> rows;
  Profile::Totals totals;
};
Accounts account(const std::vector<LaneSpans>& lanes);

/// The trace events of these threads.
std::string trace_text(const std::vector<LaneSpans>& lanes, int64_t left_out, int64_t end);

}  // namespace tessera::detail
