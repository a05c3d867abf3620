#include <tessera/framework/parameter_server/worker/worker_connection.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/internal/rpc_value.hpp>
#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>

namespace tessera::detail {

namespace {

constexpr size_t max_error_bytes = 4000;

/// Whether a status means that the worker is lost or leaving. Otherwise it refused the closure, and
/// other workers would, too.
bool is_loss(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::CANCELLED ||
         code == grpc::StatusCode::FAILED_PRECONDITION;
}

}  // namespace

WorkerConnection::WorkerConnection(CoordinatorRuntime& coordinator, int index,
                                   const std::string& name, const std::string& address,
                                   const std::string& secret)
    : coordinator_(coordinator),
      task_(coordinator, TaskType::worker, index, name, address, secret, [this] { on_change(); }),
      stub_(rpc::Worker::NewStub(task_.channel())) {}

void WorkerConnection::start() {
  task_.start();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void WorkerConnection::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  task_.stop();
}

void WorkerConnection::on_change() {
  if (!task_.state().connected) {
    const std::lock_guard lock(mutex_);
    if (running_ != nullptr) running_->TryCancel();
  }
  coordinator_.closures()->wake();
}

void WorkerConnection::run(const std::stop_token& stop) {
  try {
    const auto may = [this] { return coordinator_.is_ready(task_.state()); };
    while (const ClosurePtr closure = coordinator_.closures()->take(may, stop)) {
      try {
        run_closure(closure, stop);
      } catch (const std::exception& error) {
        const StateError prefixed(error_prefix(*closure) + error.what());
        coordinator_.closures()->fail(closure, std::make_exception_ptr(prefixed));
      }
    }
  } catch (...) {
    coordinator_.fail_in_thread(task_.name());
  }
}

std::string WorkerConnection::error_prefix(const Closure& closure) const {
  return str("[worker ", task_.index(), ", closure ", closure.number(), ", ",
             one_line(closure.request.function()), "] ");
}

void WorkerConnection::run_closure(const ClosurePtr& closure, const std::stop_token& stop) {
  grpc::ClientContext context;
  {
    const std::lock_guard lock(mutex_);
    running_ = &context;
  }
  rpc::RunReply reply;
  grpc::Status status(grpc::StatusCode::UNAVAILABLE, "the worker is lost");
  {
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    closure->request.set_done_below(coordinator_.closures()->done_below());
    closure->request.set_groups(coordinator_.groups());
    // The worker may have been lost before `running_` was set.
    if (task_.state().connected) status = stub_->Run(&context, closure->request, &reply);
  }
  {
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
  }
  if (status.ok()) return take_reply(closure, reply);
  if (!is_loss(status.error_code())) {
    throw CommError(one_line(status.error_message(), max_error_bytes));
  }
  coordinator_.closures()->requeue(closure);
  // The connection's thread will notice the loss, too.
  coordinator_.wait_until_disconnected(task_, stop);
}

void WorkerConnection::take_reply(const ClosurePtr& closure, const rpc::RunReply& reply) {
  if (reply.lost_server() > 0) {
    coordinator_.closures()->requeue(closure);
    return coordinator_.on_unreachable(
        reply.lost_server() - 1, one_line(error_prefix(*closure) + reply.error(), max_error_bytes));
  }
  if (!reply.error().empty()) throw StateError(one_line(reply.error(), max_error_bytes));
  coordinator_.closures()->finish(closure, task_.index(), from_message(reply.result(), "result"));
}

}  // namespace tessera::detail
