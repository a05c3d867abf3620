// What the coordinator's threads that attend tasks tell it, and ask.
#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>

namespace tessera::strategy::internal {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {
/// The longest until the loss of a task is seen everywhere.
constexpr auto lost_limit = 2s;
}  // namespace

rpc::CoordinatorBeat CoordinatorRuntime::next_beat(Sent& sent) const {
  const std::lock_guard lock(mutex_);
  rpc::CoordinatorBeat beat;
  beat.set_job(job_);
  beat.set_phase(phase_);
  beat.set_over(over_);
  beat.set_failure(failure_);
  if (program_ != sent.program) beat.set_program(program_);
  for (; sent.results < results_.size(); ++sent.results) beat.add_results(results_[sent.results]);
  sent.program = program_;
  sent.version = version_;
  return beat;
}

void CoordinatorRuntime::wait_for_news(const Sent& sent, std::chrono::milliseconds time,
                            const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, time, [&] { return version_ != sent.version; });
}

bool CoordinatorRuntime::is_ready(const TaskState& worker) const {
  return worker.serving && (worker.phase == 0 || worker.phase == phase_);
}

void CoordinatorRuntime::state_changed() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void CoordinatorRuntime::lost(const TaskConnection& task, const std::string& reason) {
  if (task.type() == TaskType::worker) {
    ++workers_lost_;
    if (!closures_->idle()) {
      std::cerr << str(task.name(), " is lost: ", reason, "; what it ran begins anew\n")
                << std::flush;
    }
    const std::lock_guard lock(mutex_);
    last_worker_ = steady_clock::now();
    return;
  }
  if (task.type() != TaskType::ps || !connected_) return;
  const CommError error(task.name(), "parameter servers stay until the job is over",
                        "it is lost: " + reason,
                        "start all tasks again; the last checkpoint stays");
  fail(std::make_exception_ptr(error), error.what());
}

void CoordinatorRuntime::refused(const TaskConnection& task, const std::string& reason) {
  if (connected_) return;
  const CommError error(task.name(), "tasks work for one coordinator at a time", reason,
                        "end the other job, or give this one other addresses");
  fail(std::make_exception_ptr(error), error.what());
}

void CoordinatorRuntime::other_program(const TaskConnection& task, const std::string& line) {
  if (connected_ && task.type() == TaskType::worker) {
    std::cerr << line + "\n" << std::flush;
    return;
  }
  if (task.type() == TaskType::evaluator) return;
  fail(std::make_exception_ptr(ConfigError(line)), line);
}

void CoordinatorRuntime::unreachable(int server, const std::string& line) {
  const bool known = server < static_cast<int>(servers_.size());
  std::unique_lock lock(mutex_);
  if (known) changed_.wait_for(lock, lost_limit, [&] { return over_; });
  lock.unlock();
  fail(std::make_exception_ptr(CommError(line)), line);
}

void CoordinatorRuntime::check_workers() {
  for (const auto& link : workers_) {
    if (!link->task().state().attended) continue;
    const std::lock_guard lock(mutex_);
    last_worker_ = steady_clock::now();
    return;
  }
  // With a worker the program sees the signal when a closure ends.
  const int signal = closures_->idle() ? 0 : stop_signal();
  {
    const std::lock_guard lock(mutex_);
    const bool long_ago = steady_clock::now() - last_worker_ > options_.connect_timeout;
    if (!connected_ || over_ || !(long_ago || signal != 0)) return;
  }
  const double limit = std::chrono::duration<double>(options_.connect_timeout).count();
  const CommError error("ClusterCoordinator", "lost workers come back",
                        signal != 0 ? signal_name(signal) + " while there was none"
                                    : str("none for ", limit, " s"),
                        "start workers again");
  fail(std::make_exception_ptr(error), error.what());
}

void CoordinatorRuntime::wait_until_lost(const TaskConnection& task, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, lost_limit, [&] { return over_ || !task.state().attended; });
}

}  // namespace tessera::strategy::internal
