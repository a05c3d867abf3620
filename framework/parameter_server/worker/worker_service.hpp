#pragma once

#include <rpc/parameter_server.grpc.pb.h>

#include <functional>

#include <tessera/framework/parameter_server/job/heartbeat_service.hpp>
#include <tessera/framework/parameter_server/job/main_thread_executor.hpp>

namespace tessera::detail {

/// gRPC service that runs closures on a worker's main thread.
class WorkerService final : public rpc::Worker::Service {
 public:
  using Runner = std::function<rpc::RunReply(const rpc::RunRequest&)>;
  /// `runner` is called on the main thread. The references must outlive this object.
  WorkerService(const HeartbeatService& heartbeats, MainThreadExecutor& main, Runner runner);

  grpc::Status Run(grpc::ServerContext* context, const rpc::RunRequest* request,
                   rpc::RunReply* reply) override;

 private:
  grpc::Status check(const rpc::RunRequest& request) const;

  const HeartbeatService& heartbeats_;
  MainThreadExecutor& main_;
  Runner runner_;
};

}  // namespace tessera::detail
