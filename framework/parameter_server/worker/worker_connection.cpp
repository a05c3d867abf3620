#include <tessera/framework/parameter_server/worker/worker_connection.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/internal/rpc_value.hpp>
#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>

namespace tessera::detail {

namespace {

constexpr size_t longest_error = 4000;

/// Whether a status means that the worker is lost or leaving. Otherwise it refused the closure, and
/// other workers would, too.
bool is_loss(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::CANCELLED ||
         code == grpc::StatusCode::FAILED_PRECONDITION;
}

}  // namespace

WorkerConnection::WorkerConnection(CoordinatorRuntime& lead, int index, const std::string& name,
                                   const std::string& address, const std::string& secret)
    : lead_(lead),
      task_(lead, TaskType::worker, index, name, address, secret, [this] { on_change(); }),
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
  if (!task_.state().attended) {
    const std::lock_guard lock(mutex_);
    if (running_ != nullptr) running_->TryCancel();
  }
  lead_.closures()->wake();
}

void WorkerConnection::run(const std::stop_token& stop) {
  try {
    const auto may = [this] { return lead_.is_ready(task_.state()); };
    while (const ClosurePtr closure = lead_.closures()->take(may, stop)) {
      try {
        run_closure(closure, stop);
      } catch (const std::exception& error) {
        const StateError placed(place(*closure) + error.what());
        lead_.closures()->fail(closure, std::make_exception_ptr(placed));
      }
    }
  } catch (...) {
    lead_.fail_in_thread(task_.name());
  }
}

std::string WorkerConnection::place(const Closure& closure) const {
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
    closure->request.set_done_below(lead_.closures()->done_below());
    closure->request.set_groups(lead_.groups());
    // The worker may have been lost before `running_` was set.
    if (task_.state().attended) status = stub_->Run(&context, closure->request, &reply);
  }
  {
    const std::lock_guard lock(mutex_);
    running_ = nullptr;
  }
  if (status.ok()) return take_reply(closure, reply);
  if (!is_loss(status.error_code())) {
    throw CommError(one_line(status.error_message(), longest_error));
  }
  lead_.closures()->put_back(closure);
  // The connection's thread will notice the loss, too.
  lead_.wait_until_lost(task_, stop);
}

void WorkerConnection::take_reply(const ClosurePtr& closure, const rpc::RunReply& reply) {
  if (reply.lost_server() > 0) {
    lead_.closures()->put_back(closure);
    return lead_.unreachable(reply.lost_server() - 1,
                             one_line(place(*closure) + reply.error(), longest_error));
  }
  if (!reply.error().empty()) throw StateError(one_line(reply.error(), longest_error));
  lead_.closures()->finish(closure, task_.index(), from_message(reply.result(), "result"));
}

}  // namespace tessera::detail
