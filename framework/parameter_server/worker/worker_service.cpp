#include <tessera/framework/parameter_server/worker/worker_service.hpp>

#include <utility>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/job/max_line_bytes.hpp>

namespace tessera::detail {

WorkerService::WorkerService(const HeartbeatService& heartbeats, MainThreadExecutor& main,
                             Runner runner)
    : heartbeats_(heartbeats), main_(main), runner_(std::move(runner)) {}

grpc::Status WorkerService::check(const rpc::RunRequest& request) const {
  if (!heartbeats_.is_job(request.job())) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "the worker does not work for that job"};
  }
  if (request.closure() < 1 || request.done_below() < 1 ||
      request.done_below() > request.closure() || request.phase() < 0 || request.groups() < 0) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "a closure has invalid numbers"};
  }
  return grpc::Status::OK;
}

grpc::Status WorkerService::Run(grpc::ServerContext* context, const rpc::RunRequest* request,
                                rpc::RunReply* reply) {
  try {
    if (const grpc::Status refused = check(*request); !refused.ok()) return refused;
    bool complete = false;
    const auto work = [&] {
      *reply = runner_(*request);
      complete = true;
    };
    const auto cancelled = [&] { return context->IsCancelled() || heartbeats_.ended(); };
    if (main_.run(work, cancelled, request->phase()) && complete) return grpc::Status::OK;
    return {grpc::StatusCode::UNAVAILABLE, "the worker is leaving"};
  } catch (const std::exception& error) {
    return {grpc::StatusCode::INTERNAL, one_line(error.what(), max_line_bytes)};
  }
}

}  // namespace tessera::detail
