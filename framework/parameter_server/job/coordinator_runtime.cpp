#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/parameter_server/job/job_name.hpp>

namespace tessera::detail {

using namespace strategy;

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto first_report_delay = 5s;  ///< when connect() first reports which tasks it waits for
constexpr auto report_interval = 30s;
constexpr auto notify_timeout = 2s;  ///< maximum time to notify tasks of the end
constexpr auto tick = 100ms;

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

CoordinatorRuntime::CoordinatorRuntime(const ServerCluster& cluster,
                                       const ParameterServerOptions& options)
    : cluster_(cluster),
      options_(options),
      job_(make_job_name()),
      closures_(std::make_shared<ClosureQueue>(static_cast<int>(cluster.workers.size()))) {
  const auto links = [&](TaskType type, std::vector<std::unique_ptr<TaskConnection>>& to) {
    const std::vector<std::string>& addresses = cluster.addresses(type);
    for (size_t i = 0; i < addresses.size(); ++i) {
      const int index = static_cast<int>(i);
      to.push_back(std::make_unique<TaskConnection>(
          *this, type, index, cluster.name_of(type, index), addresses[i], cluster.access.secret));
    }
  };
  links(TaskType::ps, servers_);
  links(TaskType::evaluator, evaluators_);
  for (size_t i = 0; i < cluster.workers.size(); ++i) {
    const int index = static_cast<int>(i);
    workers_.push_back(
        std::make_unique<WorkerConnection>(*this, index, cluster.name_of(TaskType::worker, index),
                                           cluster.workers[i], cluster.access.secret));
  }
  for (const auto& link : servers_) link->start();
  for (const auto& link : evaluators_) link->start();
  for (const auto& link : workers_) link->start();
}

CoordinatorRuntime::~CoordinatorRuntime() {
  finish("");
  notify_end();
  // Connections refer to each other: all stop before any is destroyed.
  for (const auto& link : workers_) link->stop();
  for (const auto& link : servers_) link->stop();
  for (const auto& link : evaluators_) link->stop();
}

void CoordinatorRuntime::finish(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  if (over_) return;
  over_ = true;
  failure_ = failure;
  ++version_;
  changed_.notify_all();
  const StateError ended("ClusterCoordinator", "its strategy must be alive", "a destroyed one", "");
  closures_->end(error_ ? error_ : std::make_exception_ptr(ended));
}

bool CoordinatorRuntime::all_notified() const {
  const auto is_notified = [](const auto& link) { return link->notified_of_end(); };
  return std::all_of(servers_.begin(), servers_.end(), is_notified) &&
         std::all_of(evaluators_.begin(), evaluators_.end(), is_notified) &&
         std::all_of(workers_.begin(), workers_.end(),
                     [](const auto& link) { return link->task().notified_of_end(); });
}

/// Waits until all tasks are notified of the end, including those that connect only now, which
/// would otherwise wait for long.
void CoordinatorRuntime::notify_end() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, notify_timeout, [&] { return all_notified(); });
}

void CoordinatorRuntime::fail(std::exception_ptr error, const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    error_ = std::move(error);
  }
  finish(line);
}

void CoordinatorRuntime::fail_in_thread(const std::string& name) noexcept {
  const std::exception_ptr caught = std::current_exception();
  try {
    try {
      std::rethrow_exception(caught);
    } catch (const std::exception& error) {
      const CommError line(name, "the coordinator must serve its connection", error.what(), "");
      std::cerr << str(line.what(), '\n') << std::flush;
      fail(std::make_exception_ptr(line), line.what());
    }
  } catch (...) {
    // Without memory for a line, waiting calls throw the original exception.
    closures_->end(caught);
  }
}

void CoordinatorRuntime::throw_if_failed() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

StoreClient& CoordinatorRuntime::store() {
  throw_if_failed();
  if (store_) return *store_;
  throw StateError("ClusterCoordinator", "the strategy is connected", "no connection yet",
                   "make a ClusterCoordinator first");
}

std::vector<std::string> CoordinatorRuntime::missing() const {
  std::vector<std::string> names;
  for (const auto& link : servers_) {
    if (!link->state().connected) names.push_back(link->name());
  }
  for (const auto& link : workers_) {
    if (link->task().state().serving) return names;
  }
  names.push_back(workers_.size() == 1 ? workers_[0]->task().name() : "a worker");
  return names;
}

void CoordinatorRuntime::throw_missing(const std::vector<std::string>& tasks) const {
  throw CommError(
      "ClusterCoordinator", "all parameter servers and a worker must connect",
      str("no sign of ", join(tasks, ", "), " for ", seconds(options_.connect_timeout), " s"),
      "start them with the same secret, and check addresses and firewall");
}

void CoordinatorRuntime::connect(const JobProgram& program) {
  set_program(program);
  if (connected_) return throw_if_failed();
  const auto begin = steady_clock::now();
  auto next_report = begin + first_report_delay;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (error_) std::rethrow_exception(error_);
    const std::vector<std::string> tasks = missing();
    if (tasks.empty()) break;
    if (const int signal = stop_signal()) {
      throw Interrupted(signal, "ClusterCoordinator",
                        str(signal_name(signal), " before ", join(tasks, ", "), " came"),
                        "start it again to go on");
    }
    const auto now = steady_clock::now();
    if (now - begin > options_.connect_timeout) throw_missing(tasks);
    if (now > next_report) {
      std::cerr << "waiting for " << join(tasks, ", ") << std::endl;
      next_report = now + report_interval;
    }
    changed_.wait_for(lock, tick);
  }
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::string> names;
  for (const auto& link : servers_) {
    channels.push_back(link->channel());
    names.push_back(link->name());
  }
  store_ = std::make_unique<StoreClient>(job_, channels, names, options_.timeout);
  last_worker_ = steady_clock::now();
  connected_ = true;
}

void CoordinatorRuntime::set_program(const JobProgram& program) {
  const std::lock_guard lock(mutex_);
  program_ = to_text(program);
  ++version_;
  changed_.notify_all();
}

int CoordinatorRuntime::begin_phase() {
  throw_if_failed();
  const std::lock_guard lock(mutex_);
  ++version_;
  changed_.notify_all();
  return ++phase_;
}

void CoordinatorRuntime::end_phase(const std::string& result) {
  throw_if_failed();
  const std::lock_guard lock(mutex_);
  results_.push_back(result);
  ++version_;
  changed_.notify_all();
}

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {
/// Maximum time until the loss of a task is noticed by all threads.
constexpr auto loss_timeout = 2s;
}  // namespace

rpc::CoordinatorHeartbeat CoordinatorRuntime::next_heartbeat(Sent& sent) const {
  const std::lock_guard lock(mutex_);
  rpc::CoordinatorHeartbeat heartbeat;
  heartbeat.set_job(job_);
  heartbeat.set_phase(phase_);
  heartbeat.set_over(over_);
  heartbeat.set_failure(failure_);
  if (program_ != sent.program) heartbeat.set_program(program_);
  for (; sent.results < results_.size(); ++sent.results)
    heartbeat.add_results(results_[sent.results]);
  sent.program = program_;
  sent.version = version_;
  return heartbeat;
}

void CoordinatorRuntime::wait_for_change(const Sent& sent, std::chrono::milliseconds time,
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

void CoordinatorRuntime::on_lost(const TaskConnection& task, const std::string& reason) {
  if (task.type() == TaskType::worker) {
    ++workers_lost_;
    if (!closures_->idle()) {
      std::cerr << str(task.name(), " is lost: ", reason, "; its closure will be restarted\n")
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

void CoordinatorRuntime::on_refused(const TaskConnection& task, const std::string& reason) {
  if (connected_) return;
  const CommError error(task.name(), "tasks work for one coordinator at a time", reason,
                        "end the other job, or give this one other addresses");
  fail(std::make_exception_ptr(error), error.what());
}

void CoordinatorRuntime::on_other_program(const TaskConnection& task, const std::string& line) {
  if (connected_ && task.type() == TaskType::worker) {
    std::cerr << line + "\n" << std::flush;
    return;
  }
  if (task.type() == TaskType::evaluator) return;
  fail(std::make_exception_ptr(ConfigError(line)), line);
}

void CoordinatorRuntime::on_unreachable(int server, const std::string& line) {
  const bool known = server < static_cast<int>(servers_.size());
  std::unique_lock lock(mutex_);
  if (known) changed_.wait_for(lock, loss_timeout, [&] { return over_; });
  lock.unlock();
  fail(std::make_exception_ptr(CommError(line)), line);
}

void CoordinatorRuntime::check_workers() {
  for (const auto& link : workers_) {
    if (!link->task().state().connected) continue;
    const std::lock_guard lock(mutex_);
    last_worker_ = steady_clock::now();
    return;
  }
  // With a worker the program handles the signal when a closure ends.
  const int signal = closures_->idle() ? 0 : stop_signal();
  {
    const std::lock_guard lock(mutex_);
    const bool long_ago = steady_clock::now() - last_worker_ > options_.connect_timeout;
    if (!connected_ || over_ || !(long_ago || signal != 0)) return;
  }
  const double limit = std::chrono::duration<double>(options_.connect_timeout).count();
  const CommError error(
      "ClusterCoordinator", "lost workers must come back",
      signal != 0 ? signal_name(signal) + " while there was none" : str("none for ", limit, " s"),
      "start workers again");
  fail(std::make_exception_ptr(error), error.what());
}

void CoordinatorRuntime::wait_until_disconnected(const TaskConnection& task,
                                                 const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, loss_timeout, [&] { return over_ || !task.state().connected; });
}

}  // namespace tessera::detail
