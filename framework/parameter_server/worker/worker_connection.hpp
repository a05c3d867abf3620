#pragma once

#include <rpc/parameter_server.grpc.pb.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <tessera/framework/parameter_server/job/task_connection.hpp>
#include <tessera/framework/parameter_server/worker/closure_queue.hpp>

namespace tessera::detail {

/// Dispatches closures to a worker, one at a time, on a thread apart from that of its heartbeats.
class WorkerConnection {
 public:
  WorkerConnection(CoordinatorRuntime& coordinator, int index, const std::string& name,
                   const std::string& address, const std::string& secret);

  void start();
  void stop();
  TaskConnection& task() { return task_; }

 private:
  void run(const std::stop_token& stop);
  void run_closure(const ClosurePtr& closure, const std::stop_token& stop);
  void take_reply(const ClosurePtr& closure, const rpc::RunReply& reply);
  void on_change();
  std::string error_prefix(const Closure& closure) const;

  CoordinatorRuntime& coordinator_;
  std::mutex mutex_;
  grpc::ClientContext* running_ = nullptr;  ///< the call of the running closure
  TaskConnection task_;
  std::unique_ptr<rpc::Worker::Stub> stub_;
  std::jthread thread_;
};

}  // namespace tessera::detail
