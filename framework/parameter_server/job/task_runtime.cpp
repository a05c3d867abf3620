#include <tessera/framework/parameter_server/job/task_runtime.hpp>

#include <exception>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/parameter_server/internal/rpc_connection.hpp>

namespace tessera::detail {

using namespace strategy;

using namespace std::chrono_literals;

namespace {

/// How often an idle main thread checks for signals.
constexpr auto idle_poll_interval = 100ms;

/// Thrown if the coordinator runs another program.
class OtherProgram : public ConfigError {
  using ConfigError::ConfigError;
};

}  // namespace

TaskRuntime::TaskRuntime(const ServerJob& job, const ServerCluster& cluster,
                         const Strategy& strategy, const ParameterServerOptions& options)
    : job_(job),
      cluster_(cluster),
      options_(options),
      heartbeats_(options.timeout, [this] { main_.wake(); }) {
  std::vector<grpc::Service*> services = {&heartbeats_};
  if (cluster.type == TaskType::worker) {
    start_worker(strategy);
    services.push_back(worker_.get());
  }
  if (cluster.type == TaskType::ps) {
    start_server();
    services.push_back(parameters_.get());
  }
  if (cluster.address().empty()) return;
  server_ = open_server(cluster.key(), cluster.address(), cluster.access,
                        static_cast<int>(cluster.workers.size()) + 1, services);
}

TaskRuntime::~TaskRuntime() {
  main_.leave();
  if (!heartbeats_.ended()) heartbeats_.leave("its program is over", false);
  if (server_) close_server(*server_);
}

void TaskRuntime::start_worker(const Strategy& strategy) {
  runner_ = std::make_unique<ClosureRunner>(
      job_, strategy, [this] { return make_store(); }, [this] { throw_if_over(); });
  worker_ = std::make_unique<WorkerService>(
      heartbeats_, main_, [this](const rpc::RunRequest& request) { return runner_->run(request); });
}

void TaskRuntime::start_server() {
  store_ = std::make_unique<ParameterStore>(
      [this](const std::function<void()>& work) { work_on_main(work); });
  ParameterServiceOptions service;
  service.server = cluster_.index;
  service.check_job = [this](const std::string& job) {
    return heartbeats_.is_job(job) ? std::string() : cluster_.name() + " serves another job";
  };
  service.patience = options_.connect_timeout;
  parameters_ = std::make_unique<ParameterService>(*store_, std::move(service));
}

void TaskRuntime::work_on_main(const std::function<void()>& work) {
  std::exception_ptr error;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  };
  if (!main_.run(guarded, [this] { return heartbeats_.ended(); })) {
    throw CommError(cluster_.name(), "", "it is leaving the job", "");
  }
  if (error) std::rethrow_exception(error);
}

void TaskRuntime::add_group(int number, const VariableGroup& group) {
  if (parameters_) parameters_->add_group(number, group);
}

std::unique_ptr<StoreClient> TaskRuntime::make_store() const {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::string> names;
  for (size_t i = 0; i < cluster_.servers.size(); ++i) {
    channels.push_back(make_channel(cluster_.servers[i], cluster_.access.secret));
    names.push_back(cluster_.name_of(TaskType::ps, static_cast<int>(i)));
  }
  return std::make_unique<StoreClient>(heartbeats_.status().job, channels, names, options_.timeout);
}

void TaskRuntime::throw_coordinator_lost(const std::string& reason) const {
  const std::string coordinator = cluster_.name_of(TaskType::chief, 0);
  throw CommError(cluster_.name(), coordinator + " stays until the job is over",
                  "it is lost: " + reason, "start all tasks again; the last checkpoint stays");
}

void TaskRuntime::throw_if_over() const {
  if (heartbeats_.ended()) throw CommError(cluster_.name(), "", "the job is over", "");
}

void TaskRuntime::check_program(const JobStatus& status, int phase, const JobProgram& own) const {
  const auto differs = difference(program_from_text(status.program), own, status.phase == phase);
  if (!differs) return;
  throw OtherProgram(cluster_.name(), "all tasks run the same program as the coordinator", *differs,
                     "start all tasks with the same program and options");
}

std::string TaskRuntime::serve(int phase, const std::function<JobProgram()>& program) {
  if (!server_) {
    throw ConfigError(cluster_.source, "a task that joins a job must be listed in its cluster",
                      cluster_.name() + ", which is not", "add it, or only watch checkpoints");
  }
  if (left_) {
    throw StateError(cluster_.name(), "a task can work only until it leaves its job", "it has left",
                     "end the program");
  }
  const StopSignals signals;
  const auto leave = [&](const std::string& why, bool other_program) {
    left_ = true;
    main_.leave();
    heartbeats_.leave(why, other_program);
  };
  try {
    const std::string result = work(phase, program);
    heartbeats_.set_serving(std::nullopt);
    return result;
  } catch (const OtherProgram& error) {
    leave(error.what(), true);
    throw;
  } catch (const std::exception& error) {
    leave(error.what(), false);
    throw;
  }
}

std::string TaskRuntime::work(int phase, const std::function<JobProgram()>& program) {
  const auto deadline = std::chrono::steady_clock::now() + options_.connect_timeout;
  const auto fit_number = static_cast<size_t>(phase);
  JobStatus status;
  for (int64_t seen = -1;;) {
    if (const int signal = stop_signal()) {
      throw Interrupted(signal, cluster_.name(), signal_name(signal), "start it again to go on");
    }
    if (const int64_t version = heartbeats_.version(); version != seen) {
      seen = version;
      status = heartbeats_.status();
      if (phase > 0 && status.results.size() >= fit_number) return status.results[fit_number - 1];
      if (status.lost) throw_coordinator_lost(status.failure);
      if (status.over && !status.failure.empty()) throw CommError(status.failure);
      if (status.over && phase == 0) return "";
      if (status.over) throw_coordinator_lost(str("its program ended before fit number ", phase));
      if (!status.program.empty()) {
        check_program(status, phase, program());
        heartbeats_.set_serving(phase);
      }
    }
    if (status.job.empty() && std::chrono::steady_clock::now() > deadline) {
      const double seconds = std::chrono::duration<double>(options_.connect_timeout).count();
      throw_coordinator_lost(str("it has not come within ", seconds, " s"));
    }
    main_.serve_one(phase, idle_poll_interval);
  }
}

}  // namespace tessera::detail
