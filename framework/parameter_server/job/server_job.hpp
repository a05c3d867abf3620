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

/// The part of one task in a parameter server job: its connections, what the program registered,
/// and the calls of fit ("phases", counted from 1) that it has come to.
class ServerJob {
 public:
  /// `strategy` must live until close().
  ServerJob(strategy::ParameterServerOptions options, const strategy::Strategy& strategy);
  ~ServerJob();
  /// Has this task leave; a coordinator ends the job.
  void close();

  const strategy::ParameterServerOptions& options() const;
  TaskType task_type() const;
  int task_index() const;
  int workers() const;
  int servers() const;
  /// "worker 1 (127.0.0.1:4001)".
  std::string task_name() const;
  /// What tells the job from others, on the coordinator.
  const std::string& job_name() const;

  /// Number of the group.
  int place(const std::vector<Variable>& variables, const OptimizerHandle& optimizer);
  const std::vector<VariableGroup>& groups() const;
  /// Makes this group the one that is used from now on, of all that share variables with it.
  void use(int group);
  void add_function(const std::string& name, ClosureFunction function);
  const ClosureFunction* find_function(const std::string& name) const;
  void add_dataset(const std::string& name, RegisteredDataset data);
  const RegisteredDataset* find_dataset(const std::string& name) const;

  // On the coordinator.

  /// Reaches all parameter servers and a worker, once. Throws as ClusterCoordinator.
  void connect();
  /// Defines and assigns groups that the servers do not have yet.
  void send_new_groups();
  /// A fit begins: tasks in an earlier one leave it. Returns its number.
  int begin_phase();
  /// The present fit is over and gave this text.
  void end_phase(const std::string& result);
  /// The job ends for all tasks with this line.
  void fail(const std::string& what) noexcept;
  StoreClient& store();
  /// Closures, and what else ClusterCoordinator tells of. Throws ConfigError on another task.
  CoordinatorRuntime& lead() const;
  /// What the program has been thrown: the job ends with it if the program does.
  void note_error(const std::string& line);

  // On the other tasks.

  /// Works on this thread until the coordinator is past fit number `phase`, and returns what that
  /// gave; of phase 0, until the job is over. Throws CommError if the job fails or somebody whom
  /// it needs is lost.
  std::string serve(int phase);
  /// Fits that this program has begun so far; counts one more.
  int next_phase();
  /// The coordinator has ended the job, or is lost.
  bool over() const;

 private:
  JobProgram program() const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::detail
