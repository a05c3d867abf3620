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

/// What a task other than the coordinator does in a job: listens, and works on the main thread.
class TaskRuntime {
 public:
  /// Opens the task's port, if the cluster has one for it. All must outlive it.
  TaskRuntime(const ServerJob& job, const ServerCluster& cluster,
              const strategy::Strategy& strategy, const strategy::ParameterServerOptions& options);
  ~TaskRuntime();

  /// On a parameter server: holds its parts of the group from now on.
  void add_group(int number, const VariableGroup& group);
  /// ServerJob::serve().
  std::string serve(int phase, const std::function<JobProgram()>& program);
  /// The coordinator has ended the job, or is lost.
  bool over() const { return attendance_.ended(); }

 private:
  void start_worker(const strategy::Strategy& strategy);
  void start_server();
  std::unique_ptr<StoreClient> make_store() const;
  void work_on_main(const std::function<void()>& work);
  std::string work(int phase, const std::function<JobProgram()>& program);
  void check_program(const JobNews& news, int phase, const JobProgram& own) const;
  [[noreturn]] void throw_lost(const std::string& reason) const;
  void throw_if_over() const;

  const ServerJob& job_;
  const ServerCluster& cluster_;
  const strategy::ParameterServerOptions& options_;
  MainThreadExecutor main_;
  HeartbeatService attendance_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<ParameterService> parameters_;
  std::unique_ptr<ClosureRunner> runner_;
  std::unique_ptr<WorkerService> worker_;
  bool left_ = false;
  /// Last: it ends before what its handlers use.
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tessera::detail
