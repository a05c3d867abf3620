// The pass of StepPasses that serves training, too.
#include <algorithm>
#include <utility>

#include <tessera/framework/ops/engine/op_plan.hpp>
#include <tessera/framework/ops/internal/normalize.hpp>
#include <tessera/framework/training/capture/step_passes.hpp>

namespace tessera::detail {

namespace {

FusedActivation activation_of(std::string_view name) {
  if (name == "relu") return FusedActivation::relu;
  return name == "relu6" ? FusedActivation::relu6 : FusedActivation::none;
}

}  // namespace

std::vector<size_t> StepPasses::readers(int32_t value) const {
  const Operand operand = {Operand::Kind::value, value};
  std::vector<size_t> all;
  for (size_t i = 0; i < step_.instructions_.size(); ++i) {
    const auto& in = step_.instructions_[i].in;
    if (!removed_[i] && std::find(in.begin(), in.end(), operand) != in.end()) all.push_back(i);
  }
  return all;
}

bool StepPasses::is_result(int32_t value) const {
  return std::find(step_.results_.begin(), step_.results_.end(), value) != step_.results_.end();
}

void StepPasses::fuse_activations() {
  removed_.assign(step_.instructions_.size(), false);
  for (size_t i = 0; i < step_.instructions_.size(); ++i) {
    const Instruction& instruction = step_.instructions_[i];
    if (!instruction.info || !instruction.plan || removed_[i]) continue;
    if (instruction.info->name == "norm_by") fuse_normalization(i);
    if (convolution_of(*instruction.info, instruction.op.get())) fuse_bias(i);
  }
  drop_removed();
}

std::optional<StepPasses::Activated> StepPasses::activation_behind(size_t sum) const {
  const int32_t value = step_.instructions_[sum].out[0];
  if (is_result(value)) return std::nullopt;
  Activated found;
  for (const size_t i : readers(value)) {
    const Instruction& reader = step_.instructions_[i];
    const std::string_view name = reader.info && reader.plan ? reader.info->name : "";
    const FusedActivation kind = activation_of(name);
    if (kind != FusedActivation::none && found.kind == FusedActivation::none) {
      found.kind = kind;
      found.activation = i;
    } else if (name == "relu6_grad" && !found.gradient) {
      // It reads what relu6 read, and may as well read the result.
      found.gradient = i;
    } else {
      return std::nullopt;
    }
  }
  if (found.kind == FusedActivation::none) return std::nullopt;
  const Instruction& activation = step_.instructions_[found.activation];
  if (activation.plan->propagation().outputs !=
      step_.instructions_[sum].plan->propagation().outputs) {
    return std::nullopt;
  }
  if (found.kind == FusedActivation::relu) {
    for (const size_t i : readers(activation.out[0])) {
      const Instruction& reader = step_.instructions_[i];
      if (reader.info && reader.plan && reader.info->name == "relu_grad") found.gradient = i;
    }
  }
  return found;
}

void StepPasses::take_activation(Instruction& fused, const Activated& found) {
  const Operand sum = {Operand::Kind::value, fused.out[0]};
  fused.out = step_.instructions_[found.activation].out;
  removed_[found.activation] = true;
  if (!found.gradient) return;
  auto& in = step_.instructions_[*found.gradient].in;
  std::replace(in.begin(), in.end(), sum, {Operand::Kind::value, fused.out[0]});
}

void StepPasses::fuse_normalization(size_t at) {
  const std::optional<Activated> found = activation_behind(at);
  if (!found) return;
  Instruction& norm = step_.instructions_[at];
  const std::shared_ptr<OpPlan> plan =
      activated_norm(*norm.info, norm.op.get(), found->kind, norm.plan->inputs());
  if (plan->propagation().outputs != norm.plan->propagation().outputs) return;
  norm.op = plan->op();
  norm.plan = plan;
  take_activation(norm, *found);
  ++step_.fused_;
  if (found->gradient) fuse_gradient(*found->gradient, found->kind, norm.in[0]);
}

void StepPasses::fuse_gradient(size_t gradient, FusedActivation kind, const Operand& x) {
  const Instruction& mask = step_.instructions_[gradient];
  const Operand dz = {Operand::Kind::value, mask.out[0]};
  if (is_result(dz.number) || !reads(*mask.plan, 0) || !reads(*mask.plan, 1)) return;
  std::vector<std::pair<size_t, std::shared_ptr<OpPlan>>> plans;
  for (const size_t i : readers(dz.number)) {
    const Instruction& reader = step_.instructions_[i];
    if (!reader.info || !reader.plan || reader.in.size() < 2) return;
    if (!(reader.in[0] == dz) || !(reader.in[1] == x)) return;
    std::vector<ShardingPtr> in = reader.plan->inputs();
    in[0] = mask.plan->inputs()[0];
    in.push_back(mask.plan->inputs()[1]);
    const std::shared_ptr<OpPlan> plan =
        activated_norm(*reader.info, reader.op.get(), kind, std::move(in));
    if (!plan || plan->propagation().outputs != reader.plan->propagation().outputs) return;
    if (!reads(*plan, 0) || !reads(*plan, plan->inputs().size() - 1)) return;
    plans.emplace_back(i, plan);
  }
  for (const auto& [i, plan] : plans) {
    Instruction& reader = step_.instructions_[i];
    reader.op = plan->op();
    reader.plan = plan;
    reader.in[0] = mask.in[0];
    reader.in.push_back(mask.in[1]);
  }
  removed_[gradient] = true;
}

void StepPasses::fuse_bias(size_t at) {
  const Instruction& conv = step_.instructions_[at];
  const Convolution& convolution = *convolution_of(*conv.info, conv.op.get());
  const bool wide = conv.plan->inputs()[0]->dtype == at::kFloat;
  const std::optional<size_t> next = only_reader(conv.out[0]);
  if (!wide || convolution.grouped || !next || !is_local(*conv.plan)) return;
  const Instruction& add = step_.instructions_[*next];
  if (!add.info || !add.plan || add.info->name != "add") return;
  if (!(add.in[0] == Operand{Operand::Kind::value, conv.out[0]})) return;
  const ShardingPtr& bias = add.plan->inputs()[1];
  if (bias->shape != Shape{add.plan->inputs()[0]->shape.back()}) return;
  const std::optional<Activated> found = activation_behind(*next);
  const FusedConvOp op{convolution, found ? found->kind : FusedActivation::none, false, false,
                       nullptr};
  const auto plan = std::make_shared<OpPlan>(
      op_info<FusedConvOp>(), &op,
      std::vector<ShardingPtr>{conv.plan->inputs()[0], conv.plan->inputs()[1], bias}, 0);
  const auto& layouts = plan->propagation().outputs;
  if (!is_local(*plan) || layouts != conv.plan->propagation().outputs) return;
  if (layouts != add.plan->propagation().outputs) return;
  const auto acts = [](const Instruction& instruction) { return bool(instruction.action); };
  const auto first = step_.instructions_.begin();
  if (std::any_of(first + int64_t(at), first + int64_t(*next), acts)) return;

  // In place of the addition, before which the bias may have been computed.
  Instruction fused = fused_convolution(plan, conv.label);
  fused.in = {conv.in[0], conv.in[1], add.in[1]};
  fused.out = add.out;
  if (found) take_activation(fused, *found);
  step_.instructions_[*next] = std::move(fused);
  removed_[at] = true;
  ++step_.fused_;
}

}  // namespace tessera::detail
