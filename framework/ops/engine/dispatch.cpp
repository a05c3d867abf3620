#include <tessera/framework/ops/engine/dispatch.hpp>

#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/ops/engine/moves.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {
namespace {

/// Bounds the cache of a program whose shapes never repeat; no model needs as many plans.
constexpr size_t max_plans = 16384;

struct PlanCache {
  std::unordered_multimap<size_t, std::shared_ptr<OpPlan>> plans;
  PlanStats stats;
};

PlanCache& cache() {
  thread_local PlanCache plans;
  return plans;
}

uint32_t parameters_of(std::span<const DTensor> in) {
  uint32_t mask = 0;
  for (size_t i = 0; i < in.size(); ++i) mask |= uint32_t(in[i].is_parameter()) << i;
  return mask;
}

const std::shared_ptr<OpPlan>& find_plan(const OpInfo& info, const void* op, size_t attributes,
                                         std::span<const DTensor> in) {
  const uint32_t parameters = parameters_of(in);
  size_t hash = mix(attributes, reinterpret_cast<size_t>(&info));
  hash = mix(hash, parameters * 4 + static_cast<size_t>(block_policy()));
  for (const DTensor& value : in) {
    hash = mix(hash, reinterpret_cast<size_t>(value.sharding().get()));
  }
  PlanCache& known = cache();
  const auto range = known.plans.equal_range(hash);
  for (auto it = range.first; it != range.second; ++it) {
    if (it->second->matches(info, op, in, parameters)) {
      ++known.stats.reused;
      return it->second;
    }
  }
  std::vector<ShardingPtr> shardings;
  for (const DTensor& value : in) shardings.push_back(value.sharding());
  auto plan = std::make_shared<OpPlan>(info, op, std::move(shardings), parameters);
  if (known.plans.size() >= max_plans) known.plans.clear();
  ++known.stats.made;
  return known.plans.emplace(hash, std::move(plan))->second;
}

void check_defined(const OpInfo& info, std::span<const DTensor> in) {
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].defined()) continue;
    throw StateError(std::string(info.name), "operands hold values",
                     str("operand ", i, " is an empty DTensor"), "give it a value first");
  }
}

}  // namespace

void push_tape(OpListener* tape) { thread_state().tapes.push_back(tape); }
void remove_tape(OpListener* tape) { std::erase(thread_state().tapes, tape); }
bool recording() { return !thread_state().tapes.empty(); }
size_t recording_tapes() { return thread_state().tapes.size(); }

NoRecording::NoRecording() : tapes_(thread_state().tapes, {}) {}

std::vector<DTensor> dispatch(const OpInfo& info, const void* op, size_t attributes,
                              std::span<const DTensor> in) {
  const ProfileSpan span(SpanKind::op, info.name);
  check_defined(info, in);
  ThreadState& state = thread_state();
  const bool communicated = std::exchange(state.communicated, false);
  std::vector<DTensor> out;
  std::shared_ptr<const void> saved_op;
  std::shared_ptr<OpPlan> plan;
  if (info.moves_blocks) {
    {
      const TracerScope no_tracer(nullptr);
      out = info.run(op, std::vector<DTensor>(in.begin(), in.end()));
    }
    if (!state.tapes.empty() || state.tracer) saved_op = info.copy(op);
  } else {
    plan = find_plan(info, op, attributes, in);
    out = plan->run(in);
    saved_op = plan->op();
  }
  keep_parameters(info, in, out);
  for (size_t t = state.tapes.size(); t-- > 0;) state.tapes[t]->ran(info, saved_op, plan, in, out);
  if (state.tracer) state.tracer->ran(info, saved_op, plan, in, out);
  state.communicated |= communicated;
  return out;
}

Propagation plan_op(const OpInfo& info, const void* op, const std::vector<ShardingPtr>& in,
                    uint32_t parameters) {
  return OpPlan(info, op, in, parameters).propagation();
}

PlanStats plan_stats() { return cache().stats; }

}  // namespace tessera::detail
