#include <tessera/framework/training/pipeline/pipeline_step.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/moves.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {

namespace {

using Kind = StepGraph::Operand::Kind;

/// The kinds of actions that compute: forward, input_gradient, weight_gradient, backward.
constexpr size_t computing_kinds = 4;

bool has(ActionKind kind, NodeTurn turn) {
  switch (kind) {
    case ActionKind::forward:
      return turn == NodeTurn::forward;
    case ActionKind::input_gradient:
      return turn == NodeTurn::input_gradient;
    case ActionKind::weight_gradient:
      return turn == NodeTurn::weight_gradient;
    case ActionKind::backward:
      return turn == NodeTurn::input_gradient || turn == NodeTurn::weight_gradient;
    default:
      return false;
  }
}

uint64_t key_of(const StepGraph::Operand& operand, int32_t stage, bool all_rows) {
  uint64_t key = static_cast<uint64_t>(operand.number);
  key = key << 1 | uint64_t(operand.kind == Kind::variable);
  return (key << 24 | static_cast<uint64_t>(stage)) << 1 | uint64_t(all_rows);
}

/// Returns the name of an action in profiles, "F3 stage 1"; kept, since they are read later.
std::string_view span_name(const PipelineAction& action) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::string name = str(to_string(action.kind), action.microbatch, " stage ", action.stage);
  const std::lock_guard<std::mutex> lock(mutex);
  return *names.insert(name).first;
}

/// Whether nothing else holds a block's memory.
bool is_own(const at::Tensor& block) {
  return block.use_count() == 1 && block.has_storage() && block.storage().use_count() == 1;
}

/// Returns totals in the dtype of their value.
Blocks rounded(Blocks totals, const Sharding& sharding) {
  for (size_t b = 0; b < totals.size(); ++b) {
    if (!totals[b].defined()) continue;
    const DeviceMemory::For memory(sharding.blocks[b].devices.front());
    const DeviceMemory::As gradients(MemoryUse::gradients);
    totals[b] = totals[b].to(sharding.dtype);
  }
  return totals;
}

/// Returns a value without partial sums; `here`: whether this process holds some of it.
DTensor resolved(const DTensor& value, bool here) {
  const Layout layout = value.layout().resolved();
  if (layout == value.layout()) return value;
  return here ? relayout_value(value, layout)
              : DTensor(intern(value.shape(), value.dtype(), layout), {});
}

/// Visits the tensors of a batch in the order in which a graph numbers them.
template <class Visit>
void each_of_batch(const Batch& batch, const Visit& visit) {
  for (const auto* list : {&batch.x, &batch.y, &batch.sample_weight}) {
    for (const DTensor& value : *list) visit(value);
  }
}

/// The actions that have run, to tell which may be next.
class DoneActions {
 public:
  explicit DoneActions(const PipelineSchedule& schedule)
      : stages_(schedule.stages()),
        microbatches_(schedule.microbatches),
        forward_(size_t(stages_ * microbatches_)),
        gradient_(forward_.size()) {}

  bool may_run(const PipelineAction& action) const {
    const auto [stage, kind, microbatch] = action;
    if (kind == ActionKind::forward) return stage == 0 || forward_[at(stage - 1, microbatch)];
    if (kind == ActionKind::weight_gradient) return gradient_[at(stage, microbatch)];
    const bool arrived = stage + 1 == stages_ || gradient_[at(stage + 1, microbatch)];
    return forward_[at(stage, microbatch)] && arrived;
  }
  void add(const PipelineAction& action) {
    if (action.kind == ActionKind::weight_gradient) return;
    auto& done = action.kind == ActionKind::forward ? forward_ : gradient_;
    done[at(action.stage, action.microbatch)] = true;
  }

 private:
  size_t at(int64_t stage, int64_t microbatch) const {
    return static_cast<size_t>(stage * microbatches_ + microbatch);
  }

  int64_t stages_, microbatches_;
  std::vector<bool> forward_, gradient_;
};

}  // namespace

std::vector<PipelineAction> merged_actions(const PipelineSchedule& schedule) {
  const PipelineSchedule computing = without_transfers(schedule);
  std::vector<size_t> next(computing.actions.size());
  size_t left = 0;
  for (const auto& actions : computing.actions) left += actions.size();
  DoneActions done(computing);
  std::vector<PipelineAction> order;
  while (left > 0) {
    const size_t before = left;
    for (size_t device = 0; device < next.size(); ++device) {
      const std::vector<PipelineAction>& actions = computing.actions[device];
      if (next[device] == actions.size() || !done.may_run(actions[next[device]])) continue;
      order.push_back(actions[next[device]++]);
      done.add(order.back());
      --left;
    }
    if (left == before) {
      throw StateError("pipeline", "the devices of a schedule do not wait for each other",
                       str(left, " actions that cannot begin"), "check the schedule's order");
    }
  }
  return order;
}

PipelineStep::PipelineStep(PipelineParts parts)
    : parts_(std::move(parts)),
      node_slots_(parts_.graph.nodes.size()),
      work_(size_t(parts_.staged.stages), std::vector<Work>(computing_kinds)),
      order_(merged_actions(parts_.schedule)),
      plans_(parts_.graph.nodes.size()),
      is_kept_(parts_.graph.values.size()) {
  for (int32_t result : parts_.results) is_kept_[size_t(result)] = true;
  for (const StepGraph::Node& node : parts_.graph.nodes) {
    for (const Operand& in : node.in) {
      if (node.effect && in.kind == Kind::value) is_kept_[size_t(in.number)] = true;
    }
  }
  add_slots();
  add_work();
  for (size_t n = 0; n < plans_.size(); ++n) {
    const bool in_turns = runs_in_turns(parts_.staged.nodes[n].turn);
    plans_[n].resize(in_turns ? size_t(parts_.meshes.microbatches()) : 1);
  }
}

int32_t PipelineStep::stage_of(const Operand& operand) const {
  if (operand.kind == Kind::variable) return parts_.staged.variable_stages[size_t(operand.number)];
  return operand.kind == Kind::value ? parts_.staged.values[size_t(operand.number)].stage : -1;
}

bool PipelineStep::is_in_turns(const Operand& operand) const {
  if (operand.kind != Kind::value) return false;
  const StagedStep::Value& value = parts_.staged.values[size_t(operand.number)];
  return value.in_turns && !value.summed;
}

size_t PipelineStep::slot(const Operand& value, int32_t stage) {
  const auto [it, inserted] = slot_of_.try_emplace(key_of(value, stage, false), slots_.size());
  if (inserted) slots_.push_back({value, stage, 0, is_in_turns(value) && stage_of(value) == stage});
  return it->second;
}

void PipelineStep::add_slots() {
  for (size_t n = 0; n < parts_.graph.nodes.size(); ++n) {
    const StagedStep::Node& staged = parts_.staged.nodes[n];
    if (!runs_in_turns(staged.turn)) continue;
    for (const Operand& in : parts_.graph.nodes[n].in) {
      node_slots_[n].push_back(slot(in, staged.stage));
      ++slots_[node_slots_[n].back()].readers;
    }
  }
}

void PipelineStep::add_work() {
  std::vector<size_t> makers(parts_.graph.values.size());
  for (size_t n = 0; n < parts_.graph.nodes.size(); ++n) {
    const StagedStep::Node& staged = parts_.staged.nodes[n];
    for (int32_t out : parts_.graph.nodes[n].out) makers[size_t(out)] = n;
    for (size_t kind = 0; kind < computing_kinds; ++kind) {
      const bool here = has(static_cast<ActionKind>(kind), staged.turn);
      if (here) work_[size_t(staged.stage)][kind].nodes.push_back(n);
    }
  }
  // slot() may add the home of a value that only other stages read.
  for (size_t to = 0; to < slots_.size(); ++to) {
    if (slots_[to].is_home || !is_in_turns(slots_[to].value)) continue;
    const Operand value = slots_[to].value;
    const size_t from = slot(value, stage_of(value)), maker = makers[size_t(value.number)];
    ++slots_[from].readers;
    for (size_t kind = 0; kind < computing_kinds; ++kind) {
      if (!has(static_cast<ActionKind>(kind), parts_.staged.nodes[maker].turn)) continue;
      work_[size_t(stage_of(value))][kind].crossings.push_back({from, to, maker});
    }
  }
}

std::vector<DTensor> PipelineStep::run(const Batch& batch, int64_t step) {
  const c10::InferenceMode inference;
  const NoRecording no_tape;
  const TracerScope untraced(nullptr);
  const auto cleanup = c10::make_scope_exit([this] {
    once_.clear();
    totals_.clear();
    copies_.clear();
    held_.clear();
    kept_.clear();
  });
  begin(batch);
  run_once(NodeTurn::before, step);
  for (const Slot& slot : slots_) {
    const int32_t from = stage_of(slot.value);
    if (is_in_turns(slot.value) || from < 0 || from == slot.stage) continue;
    at_stage(slot.value, slot.stage, is_of_rows(slot.value));
  }
  for (const PipelineAction& action : order_) run_action(action);
  end_turns();
  run_once(NodeTurn::after, step);
  std::vector<DTensor> results;
  for (int32_t number : parts_.results) results.push_back(result(number));
  return results;
}

void PipelineStep::begin(const Batch& batch) {
  const size_t values = parts_.graph.values.size();
  once_.assign(values, DTensor());
  totals_.assign(values, Blocks());
  kept_.assign(values, {});
  size_t next = 0;
  each_of_batch(batch, [&](const DTensor& value) {
    const int32_t number = parts_.graph.batch.at(next++);
    if (number >= 0) once_[size_t(number)] = value;
  });
  held_.clear();
  held_.resize(size_t(parts_.meshes.microbatches()));
  for (std::vector<Held>& held : held_) {
    held.resize(slots_.size());
    for (size_t s = 0; s < slots_.size(); ++s) held[s].readers = slots_[s].readers;
  }
}

void PipelineStep::run_once(NodeTurn turn, int64_t step) {
  for (size_t n = 0; n < parts_.graph.nodes.size(); ++n) {
    const auto [node_turn, stage, all_rows] = parts_.staged.nodes[n];
    if (node_turn != turn) continue;
    const StepGraph::Node& node = parts_.graph.nodes[n];
    const CommLabel label(node.place);
    if (node.effect) {
      perform_effect(node);
      continue;
    }
    const Mesh& mesh = all_rows ? parts_.meshes.rows_of(stage) : parts_.meshes.weights_of(stage);
    if (node.host) {
      once_[size_t(node.out[0])] = host_input(node.host(step), mesh);
      continue;
    }
    std::vector<DTensor> in;
    for (const Operand& operand : node.in) in.push_back(at_stage(operand, stage, all_rows));
    const bool here = parts_.meshes.is_here(stage);
    const std::vector<DTensor> out = here ? compute(n, in, mesh, 0) : std::vector<DTensor>();
    for (size_t o = 0; o < node.out.size(); ++o) {
      DTensor& value = once_[size_t(node.out[o])];
      value = here ? out[o] : elsewhere(node.out[o], mesh);
      // Readers of a sum over all rows, such as a count, do not know of microbatches.
      if (all_rows) value = resolved(value, here);
    }
  }
}

void PipelineStep::perform_effect(const StepGraph::Node& node) {
  // On every process, which counts steps and knows the metrics of all.
  std::vector<DTensor> in;
  for (const Operand& operand : node.in) {
    in.push_back(at_stage(operand, std::max(stage_of(operand), 0), false));
  }
  perform(in, node.run, node.changes);
}

void PipelineStep::run_action(const PipelineAction& action) {
  const Work& work = work_[size_t(action.stage)][static_cast<size_t>(action.kind)];
  if (parts_.meshes.is_here(static_cast<int32_t>(action.stage))) {
    const ProfileSpan span(SpanKind::op, Profile::is_taken() ? span_name(action) : "action");
    for (size_t n : work.nodes) run_in_turn(n, action.microbatch);
  }
  for (const Crossing& crossing : work.crossings) begin_crossing(crossing, action.microbatch);
}

void PipelineStep::run_in_turn(size_t n, int64_t microbatch) {
  const StepGraph::Node& node = parts_.graph.nodes[n];
  const int32_t stage = parts_.staged.nodes[n].stage;
  const CommLabel label(node.place);
  std::vector<DTensor> out;
  {
    std::vector<DTensor> in;
    for (size_t slot : node_slots_[n]) in.push_back(read(slot, microbatch));
    out = compute(n, in, parts_.meshes.turn(stage, microbatch), size_t(microbatch));
  }
  for (size_t o = 0; o < out.size(); ++o) {
    const int32_t number = node.out[o];
    if (parts_.staged.values[size_t(number)].summed) {
      add_to_total(number, out[o]);
      continue;
    }
    if (is_kept_[size_t(number)]) {
      kept_[size_t(number)].resize(held_.size());
      kept_[size_t(number)][size_t(microbatch)] = out[o];
    }
    const auto home = slot_of_.find(key_of({Kind::value, number}, stage, false));
    if (home == slot_of_.end()) continue;
    Held& held = held_[size_t(microbatch)][home->second];
    if (held.readers > 0) held.value = std::move(out[o]);
  }
}

void PipelineStep::begin_crossing(const Crossing& crossing, int64_t microbatch) {
  const PipelineMeshes& meshes = parts_.meshes;
  const Slot &from = slots_[crossing.from], &to = slots_[crossing.to];
  if (!meshes.is_here(from.stage) && !meshes.is_here(to.stage)) return;
  const int32_t number = from.value.number;
  const Layout& planned = parts_.graph.values[size_t(number)].sharding->layout;
  const CommLabel label(parts_.graph.nodes[crossing.maker].place);
  // Both sides know the layout from the plan.
  const Mesh& here = meshes.turn(from.stage, microbatch);
  DTensor value = meshes.is_here(from.stage)
                      ? relayout_value(read(crossing.from, microbatch),
                                       meshes.layout_on(planned, here).resolved())
                      : DTensor(intern(parts_.graph.values[size_t(number)].sharding->shape,
                                       parts_.graph.values[size_t(number)].sharding->dtype,
                                       meshes.layout_on(planned, here).resolved()),
                                {});
  auto transfer = std::make_unique<ValueTransfer>(
      value, meshes.layout_on(planned, meshes.turn(to.stage, microbatch)).resolved());
  if (meshes.is_here(to.stage)) {
    held_[size_t(microbatch)][crossing.to].arriving = std::move(transfer);
  }
}

void PipelineStep::add_to_total(int32_t number, const DTensor& value) {
  const Reduce kind = value.layout().partial_kind();
  Blocks& total = totals_[size_t(number)];
  const Blocks& addends = value.stored_blocks();
  total.resize(addends.size());
  for (size_t b = 0; b < addends.size(); ++b) {
    if (!addends[b].defined()) continue;
    const DeviceMemory::For memory(value.sharding()->blocks[b].devices.front());
    const DeviceMemory::As gradients(MemoryUse::gradients);
    // A sum in float16 or bfloat16 would lose what is small beside it.
    const bool narrow = at::isReducedFloatingType(addends[b].scalar_type());
    const at::Tensor addend = narrow ? addends[b].to(at::kFloat) : addends[b];
    if (!total[b].defined()) {
      total[b] = addend;
    } else if (total[b].is_sparse() && addend.is_sparse()) {
      total[b] = at::add(total[b], addend).coalesce();
    } else if (is_own(total[b]) && !addend.is_sparse()) {
      reduce_into(kind, total[b], addend);
    } else {
      const at::Tensor dense = addend.is_sparse() ? addend.to_dense() : addend;
      const at::Tensor before = total[b].is_sparse() ? total[b].to_dense() : total[b];
      at::Tensor sum = at::empty_like(dense);
      reduce_out(kind, sum, before, dense);
      total[b] = std::move(sum);
    }
  }
  if (!once_[size_t(number)].defined()) {
    const Mesh& mesh = parts_.meshes.weights_of(parts_.staged.values[size_t(number)].stage);
    // Only its sharding is used: end_turns() adds the blocks.
    const DTensor no_blocks(value.sharding(), Blocks(addends.size()));
    once_[size_t(number)] = parts_.meshes.value_on(no_blocks, mesh);
  }
}

void PipelineStep::end_turns() {
  for (size_t v = 0; v < once_.size(); ++v) {
    const auto [stage, in_turns, summed] = parts_.staged.values[v];
    if (!in_turns) continue;
    const auto number = static_cast<int32_t>(v);
    if (!parts_.meshes.is_here(stage)) {
      once_[v] = elsewhere(number, parts_.meshes.weights_of(stage));
    } else if (summed && once_[v].defined()) {
      once_[v] = DTensor(once_[v].sharding(), rounded(std::move(totals_[v]), *once_[v].sharding()));
    } else if (parts_.meshes.microbatches() == 1 && !kept_[v].empty()) {
      once_[v] = parts_.meshes.value_on(kept_[v][0], parts_.meshes.weights_of(stage));
    }
  }
}

std::vector<DTensor> PipelineStep::compute(size_t n, const std::vector<DTensor>& in,
                                           const Mesh& mesh, size_t turn) {
  const StepGraph::Node& node = parts_.graph.nodes[n];
  const OpInfo& info = *node.info;
  const ProfileSpan span(SpanKind::op, info.name);
  std::vector<DTensor> out;
  if (info.only_moves || info.name == "copy_to_mesh") {
    std::vector<Layout> targets;
    for (int32_t number : node.out) {
      const Layout& planned = parts_.graph.values[size_t(number)].sharding->layout;
      targets.push_back(parts_.meshes.layout_on(planned, mesh));
    }
    for (const DTensor& moved : relayout_values(in, targets)) {
      out.emplace_back(moved.sharding(), moved.stored_blocks());
    }
  } else if (info.moves_blocks) {
    out = info.run(node.op.get(), in);
  } else {
    uint32_t parameters = 0;
    for (size_t i = 0; i < in.size(); ++i) parameters |= uint32_t(in[i].is_parameter()) << i;
    std::shared_ptr<OpPlan>& plan = plans_[n][turn];
    if (!plan || !plan->matches(info, node.op.get(), in, parameters)) {
      std::vector<ShardingPtr> shardings;
      for (const DTensor& value : in) shardings.push_back(value.sharding());
      plan = std::make_shared<OpPlan>(info, node.op.get(), std::move(shardings), parameters);
    }
    out = plan->run(in);
  }
  keep_parameters(info, in, out);
  return out;
}

DTensor PipelineStep::elsewhere(int32_t number, const Mesh& mesh) const {
  const Sharding& planned = *parts_.graph.values[size_t(number)].sharding;
  return DTensor(
      intern(planned.shape, planned.dtype, parts_.meshes.layout_on(planned.layout, mesh)), {});
}

bool PipelineStep::is_of_rows(const Operand& operand) const {
  if (operand.kind != Kind::value) return false;
  const DTensor& once = once_[size_t(operand.number)];
  return once.defined() && once.mesh().rank() == parts_.meshes.rows().rank();
}

DTensor PipelineStep::at_stage(const Operand& operand, int32_t stage, bool all_rows) {
  if (operand.kind == Kind::none) return DTensor();
  const PipelineMeshes& meshes = parts_.meshes;
  const Mesh& mesh = all_rows ? meshes.rows_of(stage) : meshes.weights_of(stage);
  const bool variable = operand.kind == Kind::variable;
  const DTensor& value =
      variable ? parts_.variables[size_t(operand.number)].value() : once_[size_t(operand.number)];
  if (value.defined() && value.mesh() == mesh) return value;
  DTensor& copy = copies_[key_of(operand, stage, all_rows)];
  if (!copy.defined()) copy = moved(operand, stage, mesh);
  return copy;
}

/// Computes what at_stage() keeps.
DTensor PipelineStep::moved(const Operand& operand, int32_t stage, const Mesh& mesh) {
  const PipelineMeshes& meshes = parts_.meshes;
  if (operand.kind == Kind::value) {
    const auto constant = parts_.graph.constants.find(operand.number);
    if (constant != parts_.graph.constants.end()) {
      const Sharding& planned = *parts_.graph.values[size_t(operand.number)].sharding;
      return pack(constant->second, meshes.layout_on(planned.layout, mesh));
    }
  }
  const DTensor value = operand.kind == Kind::variable
                            ? parts_.variables[size_t(operand.number)].value()
                            : once_[size_t(operand.number)];
  if (!value.defined()) {
    throw StateError("pipeline", "a stage reads what an earlier turn has made",
                     str("value ", operand.number, ", which nothing has made"),
                     "check the schedule's order");
  }
  // First to the devices of the stage, on a mesh of its kind, then to the other kind.
  const bool of_rows = value.mesh().rank() == meshes.rows().rank();
  const Mesh& there = of_rows ? meshes.rows_of(stage) : meshes.weights_of(stage);
  DTensor result = value;
  if (!(value.mesh() == there)) {
    const Layout target = meshes.layout_on(value.layout(), there).resolved();
    const bool takes_part = meshes.is_here(stage) || !value.mesh().local_ids().empty();
    result = takes_part ? transfer_value(value, target)
                        : DTensor(intern(value.shape(), value.dtype(), target), {});
    if (value.is_parameter()) result.mark_parameter();
    if (of_rows && stage_of(operand) < 0) DeviceMemory::label(result, MemoryUse::batch);
  }
  return meshes.value_on(result, mesh);
}

DTensor PipelineStep::read(size_t slot, int64_t microbatch) {
  Held& held = held_[size_t(microbatch)][slot];
  if (!held.value.defined()) {
    const Slot& here = slots_[slot];
    if (held.arriving) {
      held.value = std::exchange(held.arriving, nullptr)->finish();
    } else if (!is_in_turns(here.value)) {
      held.value = narrowed(here.value, here.stage, microbatch);
    } else {
      throw StateError(
          "pipeline", "an action reads what earlier ones have made",
          str("value ", here.value.number, " of microbatch ", microbatch, " on stage ", here.stage),
          "check the schedule's order");
    }
  }
  const DTensor value = held.value;
  if (--held.readers == 0) held.value = DTensor();
  return value;
}

DTensor PipelineStep::narrowed(const Operand& operand, int32_t stage, int64_t microbatch) {
  const PipelineMeshes& meshes = parts_.meshes;
  const Mesh& mesh = meshes.turn(stage, microbatch);
  if (operand.kind == Kind::none) return DTensor();
  if (!is_of_rows(operand)) return meshes.value_on(at_stage(operand, stage, false), mesh);
  const DTensor all = at_stage(operand, stage, true);
  return transfer_value(all, meshes.layout_on(all.layout(), mesh));
}

DTensor PipelineStep::result(int32_t number) {
  const StagedStep::Value& value = parts_.staged.values[size_t(number)];
  const PipelineMeshes& meshes = parts_.meshes;
  const Operand operand = {Kind::value, number};
  if (!is_in_turns(operand) || meshes.microbatches() == 1) {
    return at_stage(operand, std::max(value.stage, 0), false);
  }
  if (!meshes.is_here(value.stage)) return elsewhere(number, meshes.rows_of(value.stage));
  const std::vector<DTensor>& parts = kept_[size_t(number)];
  Blocks blocks;
  for (const DTensor& part : parts) {
    blocks.insert(blocks.end(), part.blocks().begin(), part.blocks().end());
  }
  const Sharding& first = *parts.at(0).sharding();
  const Layout layout = meshes.layout_on(first.layout, meshes.rows_of(value.stage));
  return DTensor(intern(first.shape, first.dtype, layout, first.groups), std::move(blocks));
}

}  // namespace tessera::detail
