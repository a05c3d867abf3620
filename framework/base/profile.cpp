#include <tessera/framework/base/profile.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/gpu_clock.hpp>
#include <tessera/framework/base/internal/profile_lane.hpp>

namespace tessera {

using namespace detail;

namespace detail {

std::atomic<uint64_t> current_profile{0};
std::atomic<GpuClock*> gpu_clock{nullptr};

namespace {

/// Number of spans that a thread reserves at a time, to avoid contention.
constexpr int64_t spans_per_reservation = 256;

constexpr int64_t open_end = -1;

/// Marks the GPU's present queue; no_gpu without a GPU and for kinds that are not measured there.
int64_t gpu_mark(SpanKind kind) {
  GpuClock* const gpu = gpu_clock.load(std::memory_order_acquire);
  const bool unmeasured = kind == SpanKind::aten || kind == SpanKind::parallel ||
                          kind == SpanKind::wait || kind == SpanKind::callback;
  return gpu && !unmeasured ? gpu->mark() : SpanRecord::no_gpu;
}

}  // namespace

int64_t ProfileClock::reserve(int64_t count) {
  int64_t have = remaining.load();
  int64_t taken = 0;
  do {
    taken = std::min(have, count);
  } while (taken > 0 && !remaining.compare_exchange_weak(have, have - taken));
  return taken;
}

ProfileLane::ProfileLane(std::shared_ptr<ProfileClock> clock)
    : clock_(std::move(clock)), is_main_(::getpid() == ::syscall(SYS_gettid)) {}

bool ProfileLane::begin(SpanKind kind, std::string_view name, int64_t bytes) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reserved_ == 0) reserved_ = clock_->reserve(spans_per_reservation);
    if (reserved_ > 0) {
      open_.push_back(spans_.size());
      const auto depth = static_cast<uint32_t>(open_.size() - 1);
      spans_.push_back({name, clock_->now(), open_end, bytes, depth, kind});
      --reserved_;
      spans_.back().gpu_begin = gpu_mark(kind);
      return true;
    }
  } catch (const std::exception&) {
    // Out of memory: skip the span and continue.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!open_.empty() && open_.back() == spans_.size()) open_.pop_back();
  }
  ++clock_->left_out;
  return false;
}

void ProfileLane::end() noexcept {
  const int64_t now = clock_->now();
  const std::lock_guard<std::mutex> lock(mutex_);
  // The span began in an earlier or destroyed profile.
  if (open_.empty()) return;
  SpanRecord& span = spans_[open_.back()];
  span.end = now;
  open_.pop_back();
  try {
    if (span.gpu_begin != SpanRecord::no_gpu) span.gpu_end = gpu_mark(span.kind);
  } catch (const std::exception&) {
    // The span gets no GPU times.
  }
}

void ProfileLane::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  spans_ = {};
  open_.clear();
  reserved_ = 0;
}

std::vector<SpanRecord> ProfileLane::spans(int64_t limit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<SpanRecord> list;
  list.reserve(spans_.size());
  for (SpanRecord span : spans_) {
    if (span.begin > limit) break;
    if (span.end == open_end || span.end > limit) span.end = limit;
    list.push_back(span);
  }
  return list;
}

}  // namespace detail

using detail::ProfileLane;

namespace {

/// Guards `recording` and its lanes; a thread adds its lane with its first span.
std::mutex recording_mutex;
detail::Recording* recording = nullptr;
uint64_t profiles_taken = 0;

/// A thread's lane in the profile with number `profile`.
struct ThreadLane {
  uint64_t profile = 0;
  std::shared_ptr<ProfileLane> lane;
};

ThreadLane& thread_lane() {
  thread_local ThreadLane lane;
  return lane;
}

/// Adds a lane for this thread to the profile. Returns false if the profile has ended.
bool add_lane(ThreadLane& here, uint64_t profile) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(recording_mutex);
    if (detail::current_profile.load() != profile) return false;
    const auto lane = std::make_shared<ProfileLane>(recording->clock);
    recording->lanes.push_back(lane);
    here = {profile, lane};
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::vector<detail::LaneSpans> spans_of(const detail::Recording& from) {
  const std::lock_guard<std::mutex> lock(recording_mutex);
  const int64_t end = from.end();
  detail::GpuClock* const gpu = detail::gpu_clock;
  const std::vector<int64_t> times = gpu ? gpu->times() : std::vector<int64_t>();
  const auto resolve = [&](int64_t& mark) {
    const bool known = mark >= 0 && mark < static_cast<int64_t>(times.size());
    mark = known ? times[static_cast<size_t>(mark)] : detail::SpanRecord::no_gpu;
  };
  std::vector<detail::LaneSpans> list;
  for (const auto& lane : from.lanes) {
    const std::string name = lane->is_main() ? "main thread" : str("thread ", list.size() + 1);
    list.push_back({name, lane->spans(end)});
    for (detail::SpanRecord& span : list.back().spans) {
      resolve(span.gpu_begin);
      resolve(span.gpu_end);
    }
  }
  return list;
}

}  // namespace

namespace detail {

bool begin_span(uint64_t profile, SpanKind kind, std::string_view name, int64_t bytes) noexcept {
  ThreadLane& here = thread_lane();
  if (here.profile != profile && !add_lane(here, profile)) return false;
  return here.lane->begin(kind, name, bytes);
}

void end_span() noexcept { thread_lane().lane->end(); }

}  // namespace detail

Profile::Profile(const ProfileOptions& options)
    : recording_(std::make_unique<detail::Recording>()) {
  const std::lock_guard<std::mutex> lock(recording_mutex);
  if (is_taken()) {
    throw StateError("profile", "only one profile may record at a time", "a second one",
                     "stop() the first");
  }
  recording_->clock->remaining = options.max_spans;
  if (detail::GpuClock* const gpu = detail::gpu_clock) gpu->clear();
  recording_->number = ++profiles_taken;
  recording = recording_.get();
  detail::current_profile = recording_->number;
}

Profile::~Profile() {
  stop();
  for (const auto& lane : recording_->lanes) lane->clear();
}

void Profile::stop() {
  const std::lock_guard<std::mutex> lock(recording_mutex);
  if (detail::current_profile != recording_->number) return;
  detail::current_profile = 0;
  recording_->limit = recording_->clock->now();
}

std::vector<Profile::Row> Profile::rows() const {
  return detail::account(spans_of(*recording_)).rows;
}

Profile::Totals Profile::totals() const {
  Totals totals = detail::account(spans_of(*recording_)).totals;
  totals.elapsed = static_cast<double>(recording_->end()) * 1e-9;
  totals.left_out = recording_->clock->left_out;
  return totals;
}

void Profile::save(const std::string& path) const {
  const std::vector<detail::LaneSpans> lanes = spans_of(*recording_);
  const int64_t left_out = recording_->clock->left_out;
  write_file_atomically(
      path, detail::trace_text(lanes, recording_->clock->start, left_out, recording_->end()));
}

}  // namespace tessera
