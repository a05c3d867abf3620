#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/parameter_server/closure.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>
#include <tessera/framework/parameter_server/store/store_client.hpp>
#include <tessera/framework/parameter_server/worker/worker_data.hpp>

namespace tessera::detail {

class CoordinatorRuntime;
struct JobProgram;

/// A task's state in a parameter server job: its connections, the program's registrations, and the
/// number of fit calls ("phases", counted from 1) so far.
class ServerJob {
 public:
  /// `strategy` must live until close().
  ServerJob(strategy::ParameterServerOptions options, const strategy::Strategy& strategy);
  ~ServerJob();
  /// Leaves the job; on the coordinator ends it.
  void close();

  const strategy::ParameterServerOptions& options() const;
  TaskType task_type() const;
  int task_index() const;
  int workers() const;
  int servers() const;
  /// Returns "worker 1 (127.0.0.1:4001)".
  std::string task_name() const;
  /// Returns the job's random name; coordinator only.
  const std::string& job_name() const;

  /// Adds a group of variables; returns its number.
  int place(const std::vector<Variable>& variables, const OptimizerHandle& optimizer);
  const std::vector<VariableGroup>& groups() const;
  /// Marks a group as used, and all others that share variables with it as unused.
  void use(int group);
  void add_function(const std::string& name, ClosureFunction function);
  const ClosureFunction* find_function(const std::string& name) const;
  void add_dataset(const std::string& name, RegisteredDataset data);
  const RegisteredDataset* find_dataset(const std::string& name) const;

  // On the coordinator.

  /// Waits once for all parameter servers and a worker. Throws like ClusterCoordinator.
  void connect();
  /// Defines and assigns groups that the servers do not have yet.
  void send_new_groups();
  /// Begins a fit, so that tasks still in an earlier one leave it. Returns its number.
  int begin_phase();
  /// Ends the present fit with its result, as text.
  void end_phase(const std::string& result);
  /// Ends the job for all tasks with this line.
  void fail(const std::string& what) noexcept;
  StoreClient& store();
  /// Returns the coordinator's runtime. Throws ConfigError on another task.
  CoordinatorRuntime& coordinator() const;
  /// Records an error thrown to the program: if that ends the program, the job ends with it.
  void record_error(const std::string& line);

  // On the other tasks.

  /// Works on this thread until fit number `phase` is over and returns its result; phase 0: until
  /// the job is over. Throws CommError if the job fails or the coordinator is lost.
  std::string serve(int phase);
  /// Increments the number of fits that this program has begun, and returns it.
  int next_phase();
  /// Whether the coordinator has ended the job or is lost.
  bool over() const;

 private:
  JobProgram program() const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::detail
