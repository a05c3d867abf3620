#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/parameter_server/job/job_name.hpp>

namespace tessera::strategy::internal {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto first_word = 5s;   ///< of whom connect() waits for
constexpr auto next_word = 30s;
constexpr auto tell_limit = 2s;   ///< the longest that tasks are waited for at the end
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
      to.push_back(std::make_unique<TaskConnection>(*this, type, index,
                                                    cluster.name_of(type, index), addresses[i]));
    }
  };
  links(TaskType::ps, servers_);
  links(TaskType::evaluator, evaluators_);
  for (size_t i = 0; i < cluster.workers.size(); ++i) {
    const int index = static_cast<int>(i);
    workers_.push_back(std::make_unique<WorkerConnection>(
        *this, index, cluster.name_of(TaskType::worker, index), cluster.workers[i]));
  }
  for (const auto& link : servers_) link->start();
  for (const auto& link : evaluators_) link->start();
  for (const auto& link : workers_) link->start();
}

CoordinatorRuntime::~CoordinatorRuntime() {
  finish("");
  tell_end();
  // They look at each other: all stop before any goes.
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
  const StateError ended("ClusterCoordinator", "its strategy is alive", "one that is over", "");
  closures_->end(error_ ? error_ : std::make_exception_ptr(ended));
}

bool CoordinatorRuntime::all_told() const {
  const auto told = [](const auto& link) { return link->told_over(); };
  return std::all_of(servers_.begin(), servers_.end(), told) &&
         std::all_of(evaluators_.begin(), evaluators_.end(), told) &&
         std::all_of(workers_.begin(), workers_.end(),
                     [](const auto& link) { return link->task().told_over(); });
}

/// Also to those that are only just coming: they would wait for long.
void CoordinatorRuntime::tell_end() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, tell_limit, [&] { return all_told(); });
}

void CoordinatorRuntime::fail(std::exception_ptr error, const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    error_ = std::move(error);
  }
  finish(line);
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
    if (!link->state().attended) names.push_back(link->name());
  }
  for (const auto& link : workers_) {
    if (link->task().state().serving) return names;
  }
  names.push_back(workers_.size() == 1 ? workers_[0]->task().name() : "a worker");
  return names;
}

void CoordinatorRuntime::throw_missing(const std::vector<std::string>& tasks) const {
  throw CommError("ClusterCoordinator", "all parameter servers and a worker come",
                  str("nothing of ", join(tasks, ", "), " for ",
                      seconds(options_.connect_timeout), " s"),
                  "start them, and check addresses and firewall");
}

void CoordinatorRuntime::connect(const JobProgram& program) {
  set_program(program);
  if (connected_) return throw_if_failed();
  const auto begin = steady_clock::now();
  auto word = begin + first_word;
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
    if (now > word) {
      std::cerr << "waiting for " << join(tasks, ", ") << std::endl;
      word = now + next_word;
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

}  // namespace tessera::strategy::internal
