#include <tessera/framework/parameter_server/worker/worker_closure.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/internal/rpc_value.hpp>
#include <tessera/framework/parameter_server/worker/worker_variables.hpp>

namespace tessera::detail {

using namespace strategy;

namespace {

class RunContext final : public WorkerContext {
 public:
  RunContext(const ServerJob& job, const rpc::RunRequest& request, const ClosureValue& arguments,
             WorkerVariables& variables, WorkerData& data, const std::function<void()>& check)
      : job_(job),
        request_(request),
        arguments_(arguments),
        variables_(variables),
        data_(data),
        check_(check) {}

  int worker() const override { return job_.task_index(); }
  int workers() const override { return job_.workers(); }
  int64_t closure() const override { return request_.closure(); }
  const ClosureValue& arguments() const override { return arguments_; }

  std::optional<Batch> next(size_t index) override {
    check_();
    if (index >= static_cast<size_t>(request_.datasets_size())) {
      throw ConfigError("WorkerContext::next", "index is that of a dataset of the closure",
                        str(index, " of ", request_.datasets_size()), "pass it to schedule()");
    }
    const rpc::Dataset& dataset = request_.datasets(static_cast<int>(index));
    const RegisteredDataset* registered = job_.find_dataset(dataset.name());
    if (registered == nullptr) {
      throw ConfigError("WorkerContext::next", "a dataset is registered on every task",
                        in_quotes(dataset.name()), "call add_dataset() on all tasks");
    }
    return data_.next({dataset.name(), dataset.iteration()}, *registered);
  }
  void pull() override {
    check_();
    variables_.pull();
  }

 private:
  const ServerJob& job_;
  const rpc::RunRequest& request_;
  const ClosureValue& arguments_;
  WorkerVariables& variables_;
  WorkerData& data_;
  const std::function<void()>& check_;
};

}  // namespace

ClosureRunner::ClosureRunner(const ServerJob& job, const Strategy& strategy,
                             std::function<std::unique_ptr<StoreClient>()> make_store,
                             std::function<void()> check)
    : job_(job),
      strategy_(strategy),
      make_store_(std::move(make_store)),
      check_(std::move(check)),
      data_({.num_input_pipelines = job.workers(),
             .input_pipeline_id = job.task_index(),
             .num_replicas_in_sync = strategy.num_replicas_in_sync()},
            strategy.layouts()) {}

ClosureValue ClosureRunner::call(const rpc::RunRequest& request) {
  const ClosureFunction* function = job_.find_function(request.function());
  if (function == nullptr) {
    throw ConfigError("add_function", "functions are registered on every task",
                      in_quotes(request.function()) + ", which this one does not have",
                      "start all tasks with the same program");
  }
  const auto groups = static_cast<size_t>(request.groups());
  if (groups > job_.groups().size()) {
    throw ConfigError("place", "variables are placed on every task",
                      str(groups, " groups there, ", job_.groups().size(), " here"),
                      "start all tasks with the same program");
  }
  if (!store_) store_ = make_store_();
  const ClosureValue arguments = from_message(request.arguments(), "arguments");
  const auto scope = strategy_.scope();
  WorkerVariables variables(
      job_.groups(), groups, *store_,
      {.closure = request.closure(), .number = 0, .done_below = request.done_below()});
  RunContext context(job_, request, arguments, variables, data_, check_);
  ClosureValue result = (*function)(context);
  variables.push_assigned();
  return result;
}

rpc::RunReply ClosureRunner::run(const rpc::RunRequest& request) {
  rpc::RunReply reply;
  try {
    *reply.mutable_result() = to_message(call(request), "the closure's result");
  } catch (const Interrupted&) {
    throw;
  } catch (const LostServer& lost) {
    reply.set_lost_server(lost.server() + 1);
    reply.set_error(lost.what());
  } catch (const std::exception& error) {
    const std::string text = error.what();
    reply.set_error(text.empty() ? "an exception without text" : text);
  } catch (...) {
    reply.set_error("an exception of unknown type");
  }
  return reply;
}

}  // namespace tessera::detail
