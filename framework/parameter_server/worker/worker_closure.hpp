#pragma once

#include <rpc/parameter_server.pb.h>

#include <functional>
#include <memory>
#include <string>

#include <tessera/framework/parameter_server/job/server_job.hpp>
#include <tessera/framework/parameter_server/worker/worker_data.hpp>

namespace tessera::detail {

/// Runs closures on a worker, on its main thread.
class ClosureRunner {
 public:
  /// `make_store` connects to the parameter servers, at the first closure; `check` throws if the
  /// job is over. `job` and `strategy` must outlive this object.
  ClosureRunner(const ServerJob& job, const strategy::Strategy& strategy,
                std::function<std::unique_ptr<StoreClient>()> make_store,
                std::function<void()> check);

  /// Runs the function; returns its result or error. Throws Interrupted if the function does.
  rpc::RunReply run(const rpc::RunRequest& request);

 private:
  strategy::ClosureValue call(const rpc::RunRequest& request);

  const ServerJob& job_;
  const strategy::Strategy& strategy_;
  std::function<std::unique_ptr<StoreClient>()> make_store_;
  std::function<void()> check_;
  std::unique_ptr<StoreClient> store_;
  WorkerData data_;
};

}  // namespace tessera::detail
