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

constexpr auto beat_every = 1s;
/// Heartbeat interval until a worker is ready, so that it gets closures soon.
constexpr auto ask_every = 50ms;
constexpr auto retry_after = 100ms;

void pause(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

bool same(const TaskState& a, const TaskState& b) {
  return a.attended == b.attended && a.serving == b.serving && a.phase == b.phase;
}

}  // namespace

TaskConnection::TaskConnection(CoordinatorRuntime& lead, TaskType type, int index, std::string name,
                               const std::string& address, const std::string& secret,
                               std::function<void()> on_change)
    : lead_(lead),
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
  bool was_attended = false;
  {
    const std::lock_guard lock(mutex_);
    was_attended = state_.attended;
    if (same(state, state_)) return was_attended;
    state_ = state;
  }
  if (on_change_) on_change_();
  lead_.state_changed();
  return was_attended;
}

void TaskConnection::run(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested() && !told_over_) {
      attend(stop);
      lead_.check_workers();
      if (!told_over_) pause(retry_after, stop);
    }
  } catch (...) {
    lead_.fail_in_thread(name_);
  }
}

void TaskConnection::attend(const std::stop_token& stop) {
  grpc::ClientContext context;
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  Watchdog::Call call(lead_.watch(), lead_.timeout(), [&context] { context.TryCancel(); });
  const std::unique_ptr<Stream> stream = stub_->Attend(&context);
  std::string reason = talk(*stream, call, stop);
  const grpc::Status status = stream->Finish();
  if (reason.empty()) {
    const double seconds = std::chrono::duration<double>(lead_.timeout()).count();
    reason = call.ended() ? str("silent for ", seconds, " s") : "its connection broke";
  }
  const bool was_attended = set_state({});
  if (told_over_) lead_.state_changed();
  if (told_over_ || stop.stop_requested()) return;
  if (was_attended) {
    lead_.lost(*this, reason);
  } else if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
    lead_.refused(*this, one_line(status.error_message(), max_line_bytes));
  } else if (is_other_secret(status)) {
    say_other_secret();
  }
}

void TaskConnection::say_other_secret() {
  if (std::exchange(said_other_secret_, true)) return;
  const CommError error(name_, "all tasks of a job must have one secret",
                        "another one there, or none",
                        "give all of them the same TESSERA_SECRET_FILE or TESSERA_SECRET");
  std::cerr << str(error.what(), "\n") << std::flush;
}

std::string TaskConnection::talk(Stream& stream, Watchdog::Call& call,
                                 const std::stop_token& stop) {
  CoordinatorRuntime::Sent sent;
  while (!stop.stop_requested()) {
    const rpc::CoordinatorBeat beat = lead_.next_beat(sent);
    rpc::TaskBeat answer;
    if (!stream.Write(beat) || !stream.Read(&answer)) return "";
    call.heard();
    if (beat.over()) {
      told_over_ = true;
      return "";
    }
    if (!answer.failure().empty()) {
      const std::string why = one_line(answer.failure(), max_line_bytes);
      if (answer.other_program()) lead_.other_program(*this, why);
      return why;
    }
    set_state({.attended = true, .serving = answer.serving(), .phase = answer.phase()});
    const bool ready = type_ != TaskType::worker || lead_.is_ready(state());
    lead_.wait_for_news(sent, ready ? beat_every : ask_every, stop);
  }
  return "";
}

}  // namespace tessera::detail
