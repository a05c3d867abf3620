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
constexpr auto first_heartbeat_timeout = 10s;
/// Maximum number of calls without a first heartbeat; the oldest is cancelled to make room.
constexpr size_t max_pending_calls = 32;
/// How long leave() waits for the coordinator's next heartbeat, which is sent every second.
constexpr auto leave_timeout = 2s;

}  // namespace

HeartbeatService::HeartbeatService(std::chrono::milliseconds timeout,
                                   std::function<void()> on_change)
    : timeout_(timeout), on_change_(std::move(on_change)) {}

grpc::Status HeartbeatService::Attend(grpc::ServerContext* context, Stream* stream) {
  try {
    Watchdog::Call call(watch_, first_heartbeat_timeout, [context] { context->TryCancel(); });
    rpc::CoordinatorHeartbeat heartbeat;
    if (!read_first(*context, *stream, heartbeat)) {
      return {grpc::StatusCode::CANCELLED, "no heartbeat arrived"};
    }
    if (const grpc::Status refused = begin(heartbeat); !refused.ok()) return refused;
    call.set_limit(timeout_);
    return exchange_heartbeats(heartbeat, *stream, call);
  } catch (const std::exception& error) {
    end(one_line(error.what(), max_line_bytes));
    return {grpc::StatusCode::INTERNAL, "the task failed"};
  }
}

bool HeartbeatService::read_first(grpc::ServerContext& context, Stream& stream,
                                  rpc::CoordinatorHeartbeat& heartbeat) {
  {
    const std::lock_guard lock(pending_calls_mutex_);
    pending_calls_.push_back(&context);
    if (pending_calls_.size() > max_pending_calls) {
      pending_calls_.front()->TryCancel();
      pending_calls_.pop_front();
    }
  }
  const bool arrived = stream.Read(&heartbeat);
  const std::lock_guard lock(pending_calls_mutex_);
  pending_calls_.remove(&context);
  return arrived;
}

grpc::Status HeartbeatService::begin(const rpc::CoordinatorHeartbeat& heartbeat) {
  if (!is_job_name(heartbeat.job())) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "a job's name is 16 hexadecimal digits"};
  }
  const std::lock_guard lock(mutex_);
  if (leaving_ || status_.over || status_.lost) {
    return {grpc::StatusCode::UNAVAILABLE, "the task is leaving its job"};
  }
  if (connected_) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "it works for another coordinator"};
  }
  connected_ = true;
  status_.job = heartbeat.job();
  return grpc::Status::OK;
}

grpc::Status HeartbeatService::exchange_heartbeats(rpc::CoordinatorHeartbeat& heartbeat,
                                                   Stream& stream, Watchdog::Call& call) {
  do {
    call.reset_deadline();
    if (!receive(heartbeat)) {
      end("it sent an invalid heartbeat");
      return {grpc::StatusCode::INVALID_ARGUMENT, "an invalid heartbeat"};
    }
    const rpc::TaskHeartbeat answered = answer();
    if (!stream.Write(answered)) break;
    if (heartbeat.over() || !answered.failure().empty()) {
      const std::lock_guard lock(mutex_);
      connected_ = false;
      changed_.notify_all();
      return grpc::Status::OK;
    }
  } while (stream.Read(&heartbeat));
  const double seconds = std::chrono::duration<double>(timeout_).count();
  end(call.ended() ? str("silent for ", seconds, " s") : "its connection broke");
  return {grpc::StatusCode::CANCELLED, "the coordinator is gone"};
}

bool HeartbeatService::receive(const rpc::CoordinatorHeartbeat& heartbeat) {
  {
    const std::lock_guard lock(mutex_);
    const size_t results = status_.results.size() + static_cast<size_t>(heartbeat.results_size());
    if (heartbeat.job() != status_.job || heartbeat.phase() < status_.phase ||
        results > static_cast<size_t>(heartbeat.phase())) {
      return false;
    }
    const bool same = heartbeat.phase() == status_.phase && heartbeat.results_size() == 0 &&
                      heartbeat.program().empty() && !heartbeat.over();
    if (same) return true;
    status_.phase = heartbeat.phase();
    if (!heartbeat.program().empty()) status_.program = heartbeat.program();
    status_.results.insert(status_.results.end(), heartbeat.results().begin(),
                           heartbeat.results().end());
    if (heartbeat.over()) {
      status_.over = true;
      status_.failure = one_line(heartbeat.failure(), max_line_bytes);
      ended_ = true;
    }
  }
  publish();
  return true;
}

rpc::TaskHeartbeat HeartbeatService::answer() const {
  const std::lock_guard lock(mutex_);
  rpc::TaskHeartbeat heartbeat;
  heartbeat.set_serving(serving_.has_value());
  heartbeat.set_phase(serving_.value_or(0));
  if (leaving_) heartbeat.set_failure(leave_reason_);
  heartbeat.set_other_program(other_program_);
  return heartbeat;
}

/// Records that the coordinator is lost.
void HeartbeatService::end(const std::string& failure) {
  {
    const std::lock_guard lock(mutex_);
    connected_ = false;
    if (!status_.over && !leaving_) {
      status_.lost = true;
      status_.failure = failure;
    }
    ended_ = true;
    changed_.notify_all();
  }
  publish();
}

void HeartbeatService::publish() {
  ++version_;
  on_change_();
}

JobStatus HeartbeatService::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

bool HeartbeatService::is_job(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  return !status_.job.empty() && status_.job == job;
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
  changed_.wait_for(lock, leave_timeout, [&] { return !connected_; });
}

}  // namespace tessera::detail
