#include <tessera/framework/parameter_server/job/heartbeat_service.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/job/job_name.hpp>
#include <tessera/framework/parameter_server/job/max_line_bytes.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;

namespace {

/// Deadline for the first heartbeat of a new call.
constexpr auto first_beat_limit = 10s;
/// Maximum number of calls without a first heartbeat; the oldest is cancelled to make room.
constexpr size_t max_silent = 32;
/// How long leave() waits for the coordinator's next heartbeat, which is sent every second.
constexpr auto leave_limit = 2s;

}  // namespace

HeartbeatService::HeartbeatService(std::chrono::milliseconds timeout, std::function<void()> on_news)
    : timeout_(timeout), on_news_(std::move(on_news)) {}

grpc::Status HeartbeatService::Attend(grpc::ServerContext* context, Stream* stream) {
  try {
    Watchdog::Call call(watch_, first_beat_limit, [context] { context->TryCancel(); });
    rpc::CoordinatorBeat beat;
    if (!read_first(*context, *stream, beat)) {
      return {grpc::StatusCode::CANCELLED, "no heartbeat arrived"};
    }
    if (const grpc::Status refused = begin(beat); !refused.ok()) return refused;
    call.set_limit(timeout_);
    return talk(beat, *stream, call);
  } catch (const std::exception& error) {
    end(one_line(error.what(), max_line_bytes));
    return {grpc::StatusCode::INTERNAL, "the task failed"};
  }
}

bool HeartbeatService::read_first(grpc::ServerContext& context, Stream& stream,
                                  rpc::CoordinatorBeat& beat) {
  {
    const std::lock_guard lock(silent_mutex_);
    silent_.push_back(&context);
    if (silent_.size() > max_silent) {
      silent_.front()->TryCancel();
      silent_.pop_front();
    }
  }
  const bool came = stream.Read(&beat);
  const std::lock_guard lock(silent_mutex_);
  silent_.remove(&context);
  return came;
}

grpc::Status HeartbeatService::begin(const rpc::CoordinatorBeat& beat) {
  if (!is_job_name(beat.job())) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "a job's name is 16 hexadecimal digits"};
  }
  const std::lock_guard lock(mutex_);
  if (leaving_ || news_.over || news_.lost) {
    return {grpc::StatusCode::UNAVAILABLE, "the task is leaving its job"};
  }
  if (attended_) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "it works for another coordinator"};
  }
  attended_ = true;
  news_.job = beat.job();
  return grpc::Status::OK;
}

grpc::Status HeartbeatService::talk(rpc::CoordinatorBeat& beat, Stream& stream,
                                    Watchdog::Call& call) {
  do {
    call.heard();
    if (!hear(beat)) {
      end("it sent an invalid heartbeat");
      return {grpc::StatusCode::INVALID_ARGUMENT, "an invalid heartbeat"};
    }
    const rpc::TaskBeat answered = answer();
    if (!stream.Write(answered)) break;
    if (beat.over() || !answered.failure().empty()) {
      const std::lock_guard lock(mutex_);
      attended_ = false;
      changed_.notify_all();
      return grpc::Status::OK;
    }
  } while (stream.Read(&beat));
  const double seconds = std::chrono::duration<double>(timeout_).count();
  end(call.ended() ? str("silent for ", seconds, " s") : "its connection broke");
  return {grpc::StatusCode::CANCELLED, "the coordinator is gone"};
}

bool HeartbeatService::hear(const rpc::CoordinatorBeat& beat) {
  {
    const std::lock_guard lock(mutex_);
    const size_t results = news_.results.size() + static_cast<size_t>(beat.results_size());
    if (beat.job() != news_.job || beat.phase() < news_.phase ||
        results > static_cast<size_t>(beat.phase())) {
      return false;
    }
    const bool same = beat.phase() == news_.phase && beat.results_size() == 0 &&
                      beat.program().empty() && !beat.over();
    if (same) return true;
    news_.phase = beat.phase();
    if (!beat.program().empty()) news_.program = beat.program();
    news_.results.insert(news_.results.end(), beat.results().begin(), beat.results().end());
    if (beat.over()) {
      news_.over = true;
      news_.failure = one_line(beat.failure(), max_line_bytes);
      ended_ = true;
    }
  }
  publish();
  return true;
}

rpc::TaskBeat HeartbeatService::answer() const {
  const std::lock_guard lock(mutex_);
  rpc::TaskBeat beat;
  beat.set_serving(serving_.has_value());
  beat.set_phase(serving_.value_or(0));
  if (leaving_) beat.set_failure(leave_reason_);
  beat.set_other_program(other_program_);
  return beat;
}

/// Records that the coordinator is lost.
void HeartbeatService::end(const std::string& failure) {
  {
    const std::lock_guard lock(mutex_);
    attended_ = false;
    if (!news_.over && !leaving_) {
      news_.lost = true;
      news_.failure = failure;
    }
    ended_ = true;
    changed_.notify_all();
  }
  publish();
}

void HeartbeatService::publish() {
  ++version_;
  on_news_();
}

JobStatus HeartbeatService::news() const {
  const std::lock_guard lock(mutex_);
  return news_;
}

bool HeartbeatService::is_job(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  return !news_.job.empty() && news_.job == job;
}

void HeartbeatService::set_serving(std::optional<int> phase) {
  const std::lock_guard lock(mutex_);
  serving_ = phase;
}

void HeartbeatService::leave(const std::string& failure, bool other_program) {
  std::unique_lock lock(mutex_);
  leaving_ = true;
  serving_.reset();
  leave_reason_ = one_line(failure, max_line_bytes);
  other_program_ = other_program;
  changed_.wait_for(lock, leave_limit, [&] { return !attended_; });
}

}  // namespace tessera::detail
