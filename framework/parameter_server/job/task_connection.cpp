#include <tessera/framework/parameter_server/job/task_connection.hpp>

#include <condition_variable>
#include <iostream>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/internal/rpc_connection.hpp>
#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>
#include <tessera/framework/parameter_server/job/max_line_bytes.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;

namespace {

constexpr auto heartbeat_period = 1s;
/// Heartbeat interval until a worker is ready, so that it gets closures soon.
constexpr auto startup_heartbeat_period = 50ms;
constexpr auto retry_delay = 100ms;

void pause(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

bool same(const TaskState& a, const TaskState& b) {
  return a.connected == b.connected && a.serving == b.serving && a.phase == b.phase;
}

}  // namespace

TaskConnection::TaskConnection(CoordinatorRuntime& coordinator, TaskType type, int index,
                               std::string name, const std::string& address,
                               const std::string& secret, std::function<void()> on_change)
    : coordinator_(coordinator),
      type_(type),
      index_(index),
      name_(std::move(name)),
      channel_(make_channel(address, secret)),
      stub_(rpc::Task::NewStub(channel_)),
      on_change_(std::move(on_change)) {}

void TaskConnection::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void TaskConnection::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

TaskState TaskConnection::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool TaskConnection::set_state(const TaskState& state) {
  bool was_connected = false;
  {
    const std::lock_guard lock(mutex_);
    was_connected = state_.connected;
    if (same(state, state_)) return was_connected;
    state_ = state;
  }
  if (on_change_) on_change_();
  coordinator_.state_changed();
  return was_connected;
}

void TaskConnection::run(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested() && !notified_of_end_) {
      attend(stop);
      coordinator_.check_workers();
      if (!notified_of_end_) pause(retry_delay, stop);
    }
  } catch (...) {
    coordinator_.fail_in_thread(name_);
  }
}

void TaskConnection::attend(const std::stop_token& stop) {
  grpc::ClientContext context;
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  Watchdog::Call call(coordinator_.watch(), coordinator_.timeout(),
                      [&context] { context.TryCancel(); });
  const std::unique_ptr<Stream> stream = stub_->Attend(&context);
  std::string reason = exchange_heartbeats(*stream, call, stop);
  const grpc::Status status = stream->Finish();
  if (reason.empty()) {
    const double seconds = std::chrono::duration<double>(coordinator_.timeout()).count();
    reason = call.ended() ? str("silent for ", seconds, " s") : "its connection broke";
  }
  const bool was_connected = set_state({});
  if (notified_of_end_) coordinator_.state_changed();
  if (notified_of_end_ || stop.stop_requested()) return;
  if (was_connected) {
    coordinator_.on_lost(*this, reason);
  } else if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
    coordinator_.on_refused(*this, one_line(status.error_message(), max_line_bytes));
  } else if (is_other_secret(status)) {
    report_other_secret();
  }
}

void TaskConnection::report_other_secret() {
  if (std::exchange(reported_other_secret_, true)) return;
  const CommError error(name_, "all tasks of a job must have one secret",
                        "another one there, or none",
                        "give all of them the same TESSERA_SECRET_FILE or TESSERA_SECRET");
  std::cerr << str(error.what(), "\n") << std::flush;
}

std::string TaskConnection::exchange_heartbeats(Stream& stream, Watchdog::Call& call,
                                                const std::stop_token& stop) {
  CoordinatorRuntime::Sent sent;
  while (!stop.stop_requested()) {
    const rpc::CoordinatorHeartbeat heartbeat = coordinator_.next_heartbeat(sent);
    rpc::TaskHeartbeat answer;
    if (!stream.Write(heartbeat) || !stream.Read(&answer)) return "";
    call.reset_deadline();
    if (heartbeat.over()) {
      notified_of_end_ = true;
      return "";
    }
    if (!answer.failure().empty()) {
      const std::string why = one_line(answer.failure(), max_line_bytes);
      if (answer.other_program()) coordinator_.on_other_program(*this, why);
      return why;
    }
    set_state({.connected = true, .serving = answer.serving(), .phase = answer.phase()});
    const bool ready = type_ != TaskType::worker || coordinator_.is_ready(state());
    coordinator_.wait_for_change(sent, ready ? heartbeat_period : startup_heartbeat_period, stop);
  }
  return "";
}

}  // namespace tessera::detail
