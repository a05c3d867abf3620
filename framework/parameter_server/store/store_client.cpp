#include <tessera/framework/parameter_server/store/store_client.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/parameter_server/store/pull_targets.hpp>
#include <tessera/framework/parameter_server/store/push_plan.hpp>
#include <tessera/framework/parameter_server/store/store_calls.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {

namespace {

std::vector<int> all_servers(int count) {
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Returns the assignment count of each variable.
std::vector<uint64_t> assignments(const VariableGroup& definition) {
  std::vector<uint64_t> counts;
  for (const Variable& variable : definition.variables) {
    counts.push_back(variable.has_value() ? variable.value().tag()->version : 0);
  }
  return counts;
}

std::optional<double> rate_of(const VariableGroup& definition) {
  if (!definition.optimizer || definition.optimizer->has_schedule()) return std::nullopt;
  return definition.optimizer->learning_rate();
}

}  // namespace

std::string describe_optimizer(const OptimizerHandle& optimizer) {
  if (!optimizer) return "none";
  Json config = optimizer->config();
  if (!optimizer->has_schedule()) config.erase("learning_rate");
  return str(optimizer->class_name(), " ", config.dump());
}

struct StoreClient::State {
  /// Versions at the last pull.
  struct Known {
    std::vector<int64_t> versions;   ///< by server
    std::vector<uint64_t> assigned;  ///< by variable
  };
  std::string job;
  StoreCalls calls;
  std::map<int, Known> known = {};

  rpc::Head head(int group) const;
  void assign(int group, const VariableGroup& definition, const std::vector<Source>& sources,
              int64_t steps);
  std::vector<int64_t> known_versions(int group, const VariableGroup& definition) const;
  StoreState pull(int server, const rpc::PullRequest& request, const std::vector<Part>& parts,
                  int64_t bytes, PullTargets& targets) const;
};

StoreClient::StoreClient(std::string job, std::vector<std::shared_ptr<grpc::Channel>> servers,
                         std::vector<std::string> names, std::chrono::milliseconds patience)
    : state_(std::make_unique<State>(
          State{std::move(job), StoreCalls(servers, std::move(names), patience)})) {}
StoreClient::~StoreClient() = default;

rpc::Head StoreClient::State::head(int group) const {
  rpc::Head head;
  head.set_job(job);
  head.set_group(group);
  return head;
}

void StoreClient::define(int group, const VariableGroup& definition) {
  rpc::DefineRequest request;
  request.set_job(state_->job);
  request.set_group(group);
  request.set_parts(definition.plan.describe());
  request.set_optimizer(describe_optimizer(definition.optimizer));
  StoreCalls::each(all_servers(state_->calls.size()), [&](int server) {
    rpc::DefineReply reply;
    state_->calls.call(server, "the variables' definition", 0, [&](auto& stub, auto& context) {
      return stub.Define(&context, request, &reply);
    });
  });
}

void StoreClient::assign(int group, const VariableGroup& definition, bool slots) {
  std::vector<Source> sources;
  for (size_t v = 0; v < definition.variables.size(); ++v) {
    const std::vector<Variable> tensors =
        slots ? variable_and_slots(definition, v) : std::vector<Variable>{definition.variables[v]};
    for (size_t k = 0; k < tensors.size(); ++k) {
      sources.push_back({v, static_cast<int>(k), tensors[k].value().full().contiguous()});
    }
  }
  state_->assign(group, definition, sources,
                 slots && definition.optimizer ? definition.optimizer->steps() : -1);
}

void StoreClient::set_learning_rate(int group, const VariableGroup& definition) {
  if (rate_of(definition)) state_->assign(group, definition, {}, -1);
}

void StoreClient::State::assign(int group, const VariableGroup& definition,
                                const std::vector<Source>& sources, int64_t steps) {
  rpc::Head head = this->head(group);
  head.mutable_state()->set_steps(steps);
  if (const auto rate = rate_of(definition)) head.set_learning_rate(*rate);
  StoreCalls::each(all_servers(calls.size()), [&](int server) {
    const std::vector<Part> parts = definition.plan.of_server(server);
    const int64_t bytes = StoreCalls::bytes_to_send(parts, sources);
    calls.call(server, "values", bytes, [&](auto& stub, auto& context) {
      rpc::StoreState reply;
      const auto writer = stub.Assign(&context, &reply);
      StoreCalls::send(*writer, head, parts, sources);
      return writer->Finish();
    });
  });
}

/// Returns, by server, the version that the local variables still hold; 0: none.
std::vector<int64_t> StoreClient::State::known_versions(int group,
                                                        const VariableGroup& definition) const {
  const auto it = known.find(group);
  if (it == known.end()) return std::vector<int64_t>(static_cast<size_t>(calls.size()));
  std::vector<int64_t> versions = it->second.versions;
  const std::vector<uint64_t> now = assignments(definition);
  for (const Part& part : definition.plan.parts) {
    if (it->second.assigned[part.variable] == now[part.variable]) continue;
    versions[static_cast<size_t>(part.server)] = 0;
  }
  return versions;
}

void StoreClient::pull(int group, const VariableGroup& definition, bool slots) {
  std::vector<int64_t> versions = state_->known_versions(group, definition);
  state_->known.erase(group);
  PullTargets targets(definition, slots);
  std::vector<int64_t> steps(versions.size());
  StoreCalls::each(all_servers(state_->calls.size()), [&](int server) {
    const auto s = static_cast<size_t>(server);
    const std::vector<Part> parts = definition.plan.of_server(server);
    int64_t bytes = 0;
    for (const Part& part : parts) {
      const auto element =
          static_cast<int64_t>(c10::elementSize(definition.plan.dtypes[part.variable]));
      bytes += numel(part.shape) * element * (slots ? 4 : 1);
    }
    rpc::PullRequest request;
    request.set_job(state_->job);
    request.set_group(group);
    request.set_known_version(slots ? 0 : versions[s]);
    request.set_slots(slots);
    const StoreState state = state_->pull(server, request, parts, bytes, targets);
    versions[s] = state.version;
    const bool trains = std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
      return definition.plan.trained[part.variable];
    });
    if (trains) steps[s] = state.steps;
  });
  targets.finish();
  if (slots && definition.optimizer) {
    definition.optimizer->set_steps(*std::max_element(steps.begin(), steps.end()));
  }
  state_->known[group] = {std::move(versions), assignments(definition)};
}

StoreState StoreClient::State::pull(int server, const rpc::PullRequest& request,
                                    const std::vector<Part>& parts, int64_t bytes,
                                    PullTargets& targets) const {
  rpc::Head head;
  calls.call(server, "a pull", bytes, [&](auto& stub, auto& context) {
    const auto reader = stub.Pull(&context, request);
    PieceReader pieces([&](int part, int kind) {
      if (part >= 0 && static_cast<size_t>(part) < parts.size()) {
        return targets.begin(parts[static_cast<size_t>(part)], kind);
      }
      throw ConfigError("pull", str("one of ", parts.size(), " parts"), str(part),
                        "run the same program on all tasks");
    });
    std::exception_ptr error;
    try {
      rpc::Pieces message;
      while (reader->Read(&message)) {
        if (message.has_head()) head = message.head();
        pieces.take(message);
      }
    } catch (...) {
      error = std::current_exception();
      context.TryCancel();
    }
    const grpc::Status status = reader->Finish();
    if (error) std::rethrow_exception(error);
    if (status.ok()) pieces.finish(head.bytes());
    return status;
  });
  return from_message(head.state());
}

bool StoreClient::push(int group, const VariableGroup& definition, const PushId& id,
                       const std::vector<at::Tensor>& gradients,
                       const std::vector<at::Tensor>& added) {
  const PushPlan plan = plan_push(definition, gradients, added);
  rpc::Head head = state_->head(group);
  head.mutable_push()->set_closure(id.closure);
  head.mutable_push()->set_number(id.number);
  head.mutable_push()->set_done_below(id.done_below);
  std::vector<char> repeated(static_cast<size_t>(definition.plan.servers), true);
  StoreCalls::each(plan.servers, [&](int server) {
    const auto s = static_cast<size_t>(server);
    rpc::Head own = head;
    own.set_step(plan.steps[s]);
    const std::vector<Part> parts = definition.plan.of_server(server);
    const int64_t bytes = StoreCalls::bytes_to_send(parts, plan.sources);
    rpc::PushReply reply;
    state_->calls.call(server, "a push", bytes, [&](auto& stub, auto& context) {
      const auto writer = stub.Push(&context, &reply);
      StoreCalls::send(*writer, own, parts, plan.sources);
      return writer->Finish();
    });
    repeated[s] = reply.repeated_push();
  });
  return !plan.servers.empty() && std::count(repeated.begin(), repeated.end(), false) == 0;
}

std::vector<StoreState> StoreClient::states(int group) {
  rpc::StateRequest request;
  request.set_job(state_->job);
  request.set_group(group);
  const std::vector<int> servers = all_servers(state_->calls.size());
  std::vector<StoreState> states(servers.size());
  StoreCalls::each(servers, [&](int server) {
    rpc::StoreState reply;
    state_->calls.call(server, "a query of its state", 0, [&](auto& stub, auto& context) {
      return stub.State(&context, request, &reply);
    });
    states[static_cast<size_t>(server)] = from_message(reply);
  });
  return states;
}

}  // namespace tessera::detail
