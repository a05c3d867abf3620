#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/server.h>

#include <tessera/framework/parameter_server/job/heartbeat_service.hpp>
#include <tessera/framework/parameter_server/job/job_program.hpp>
#include <tessera/framework/parameter_server/job/main_thread_executor.hpp>
#include <tessera/framework/parameter_server/job/server_cluster.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>
#include <tessera/framework/parameter_server/store/parameter_service.hpp>
#include <tessera/framework/parameter_server/worker/worker_closure.hpp>
#include <tessera/framework/parameter_server/worker/worker_service.hpp>

namespace tessera::detail {

/// The side of a job of tasks other than the coordinator: serves calls and works on the main
/// thread.
class TaskRuntime {
 public:
  /// Listens on the task's port, if the cluster lists one. All arguments must outlive this object.
  TaskRuntime(const ServerJob& job, const ServerCluster& cluster,
              const strategy::Strategy& strategy, const strategy::ParameterServerOptions& options);
  ~TaskRuntime();

  /// Adds this server's parts of the group; does nothing on other tasks.
  void add_group(int number, const VariableGroup& group);
  /// Implements ServerJob::serve().
  std::string serve(int phase, const std::function<JobProgram()>& program);
  /// Whether the coordinator has ended the job or is lost.
  bool over() const { return heartbeats_.ended(); }

 private:
  void start_worker(const strategy::Strategy& strategy);
  void start_server();
  std::unique_ptr<StoreClient> make_store() const;
  void work_on_main(const std::function<void()>& work);
  std::string work(int phase, const std::function<JobProgram()>& program);
  void check_program(const JobStatus& status, int phase, const JobProgram& own) const;
  [[noreturn]] void throw_coordinator_lost(const std::string& reason) const;
  void throw_if_over() const;

  const ServerJob& job_;
  const ServerCluster& cluster_;
  const strategy::ParameterServerOptions& options_;
  MainThreadExecutor main_;
  HeartbeatService heartbeats_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<ParameterService> parameters_;
  std::unique_ptr<ClosureRunner> runner_;
  std::unique_ptr<WorkerService> worker_;
  bool left_ = false;
  /// Last member, so that it ends before the members that its handlers use.
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tessera::detail
