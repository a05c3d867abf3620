#include <tessera/framework/training/capture/captured_step.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/engine/moves.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/training/capture/step_passes.hpp>

namespace tessera::detail {
namespace {

/// Visits all tensors of a batch in a fixed order.
template <class Visit>
void each_tensor(const Batch& batch, const Visit& visit) {
  for (const DTensor& x : batch.x) visit(x);
  for (const DTensor& y : batch.y) visit(y);
  for (const DTensor& weight : batch.sample_weight) visit(weight);
}

bool same_numbers(const DTensor& a, const DTensor& b) {
  if (a.sharding() != b.sharding()) return false;
  return std::equal(a.blocks().begin(), a.blocks().end(), b.blocks().begin(), b.blocks().end(),
                    [](const at::Tensor& x, const at::Tensor& y) {
                      return x.defined() == y.defined() && (!x.defined() || at::equal(x, y));
                    });
}

}  // namespace

std::string CapturedStep::difference(const CapturedStep& other, int64_t step) const {
  const auto name = [](const Instruction& one) {
    const char* const kind = one.host      ? "a number of the step"
                             : one.compute ? "weights combined"
                                           : "an action";
    std::string text(one.info ? one.info->name : kind);
    return one.label.empty() ? text : text + " in " + one.label;
  };
  const size_t count = std::min(instructions_.size(), other.instructions_.size());
  for (size_t i = 0; i < count; ++i) {
    const Instruction &recorded = instructions_[i], &now = other.instructions_[i];
    const std::string names = name(recorded) == name(now)
                                  ? name(now)
                                  : str(name(now), " instead of the recorded ", name(recorded));
    const std::string what =
        name(recorded) == name(now) ? difference(recorded, now, step) : "another operation";
    if (!what.empty()) return str("operation ", i + 1, ", ", names, ": ", what);
    for (const Operand& in : now.in) {
      const bool constant = in.kind == Operand::Kind::value && other.constant_[size_t(in.number)];
      if (constant && !same_numbers(values_[size_t(in.number)], other.values_[size_t(in.number)])) {
        return str("operation ", i + 1, ", ", names, ": a constant with other numbers");
      }
    }
  }
  if (instructions_.size() == other.instructions_.size()) return "";
  return str(other.instructions_.size(), " operations instead of the recorded ",
             instructions_.size());
}

std::string CapturedStep::difference(const Instruction& mine, const Instruction& other,
                                     int64_t step) const {
  if (mine.in != other.in || mine.out != other.out) return "other operands";
  if (mine.op && !mine.info->equal(mine.op.get(), other.op.get())) return "other options";
  if (mine.host && !at::equal(mine.host(step), other.host(step))) return "another number";
  return "";
}

bool CapturedStep::fits() const {
  for (const CapturedVariable& captured : variables_) {
    if (captured.variable.trainable() != captured.trainable) return false;
    // A step does not use a weight that has no value, such as the count of a Normalization.
    const bool used = captured.sharding != nullptr;
    if (used && captured.variable.value().sharding() != captured.sharding) return false;
    const Placement& placement = captured.variable.placement();
    if (placement.use != captured.use) return false;
    if (placement.reshard_after_forward != captured.reshard_after_forward) return false;
  }
  return true;
}

void CapturedStep::update_from_weights(int64_t step) {
  FromWeights& weights = *weights_;
  if (weights.instructions.empty()) return;
  bool changed = !weights.ready;
  weights.versions.resize(variables_.size());
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (!variables_[v].sharding) continue;
    const uint64_t now = variables_[v].variable.value().tag()->version;
    changed = changed || now != weights.versions[v];
    weights.versions[v] = now;
  }
  if (changed) {
    weights.ready = false;
    for (const Instruction& instruction : weights.instructions) {
      run(instruction, step);
      for (int32_t value : instruction.released) values_[size_t(value)] = DTensor();
    }
    weights.values.clear();
    for (int32_t value : weights.kept) weights.values.push_back(values_[size_t(value)]);
    weights.ready = true;
    weights_run_ = ++weights.runs;
  } else if (weights_run_ != weights.runs) {
    for (size_t i = 0; i < weights.kept.size(); ++i) {
      values_[size_t(weights.kept[i])] = weights.values[i];
    }
    weights_run_ = weights.runs;
  }
}

bool CapturedStep::share_weights(const CapturedStep& other) {
  const auto same = [](const CapturedVariable& a, const CapturedVariable& b) {
    return a.variable.is(b.variable);
  };
  if (!std::equal(variables_.begin(), variables_.end(), other.variables_.begin(),
                  other.variables_.end(), same)) {
    return false;
  }
  const FromWeights &mine = *weights_, &others = *other.weights_;
  if (!other.fits() || mine.kept != others.kept ||
      mine.instructions.size() != others.instructions.size())
    return false;
  for (size_t i = 0; i < mine.instructions.size(); ++i) {
    const Instruction &one = mine.instructions[i], &another = others.instructions[i];
    if (one.info != another.info || one.computes != another.computes) return false;
    if (!difference(one, another, 0).empty()) return false;
    for (const Operand& operand : one.in) {
      const auto number = size_t(operand.number);
      if (operand.kind != Operand::Kind::value || !constant_[number]) continue;
      if (!other.constant_[number] || !same_numbers(values_[number], other.values_[number]))
        return false;
    }
  }
  weights_ = other.weights_;
  return true;
}

void CapturedStep::release_weights() {
  if (weights_run_ == 0) return;
  weights_run_ = 0;
  weights_->values.clear();
  weights_->ready = false;
  for (int32_t value : weights_->kept) {
    if (!constant_[size_t(value)]) values_[size_t(value)] = DTensor();
  }
}

std::vector<DTensor> CapturedStep::run(const Batch& batch, int64_t step) {
  const c10::InferenceMode inference;
  performed_action_ = false;
  update_from_weights(step);
  MemoryPlanner::Run memory(memory_);
  const auto cleanup = c10::make_scope_exit([this] {
    for (size_t v = 0; v < values_.size(); ++v) {
      if (!constant_[v] && !kept_[v]) values_[v] = DTensor();
    }
  });
  size_t next = 0;
  each_tensor(batch, [&](const DTensor& value) { values_[size_t(batch_[next++])] = value; });
  for (size_t i = 0; i < instructions_.size(); ++i) {
    memory.at(static_cast<int64_t>(i));
    try {
      run(instructions_[i], step);
    } catch (const Error&) {
      if (!instructions_[i].label.empty()) rethrow_at(instructions_[i].label);
      throw;
    }
    for (int32_t value : instructions_[i].released) values_[size_t(value)] = DTensor();
  }
  std::vector<DTensor> results;
  for (int32_t result : results_) results.push_back(values_[size_t(result)]);
  memory.complete();
  return results;
}

void CapturedStep::run(const Instruction& instruction, int64_t step) {
  const CommLabel label(instruction.label);
  if (instruction.host) {
    values_[size_t(instruction.out[0])] = host_input(instruction.host(step), instruction.mesh);
    return;
  }
  Values in;
  for (const Operand& operand : instruction.in) {
    switch (operand.kind) {
      case Operand::Kind::value:
        in.push_back(values_[size_t(operand.number)]);
        break;
      case Operand::Kind::variable:
        in.push_back(variables_[size_t(operand.number)].variable.value());
        break;
      case Operand::Kind::none:
        in.emplace_back();
    }
  }
  if (instruction.compute) {
    const NoRecording no_tape;
    std::vector<DTensor> out = instruction.compute({in.data(), in.size()});
    for (size_t o = 0; o < out.size(); ++o) values_[size_t(instruction.out[o])] = std::move(out[o]);
    return;
  }
  if (!instruction.action) return run_op(instruction, in);
  performed_action_ = true;
  perform({in.data(), in.size()}, instruction.action, instruction.changes);
}

void CapturedStep::run_op(const Instruction& instruction, const Values& in) {
  const OpInfo& info = *instruction.info;
  const ProfileSpan span(SpanKind::op, info.name);
  std::vector<DTensor> out =
      instruction.plan ? instruction.plan->run({in.data(), in.size()})
                       : info.run(instruction.op.get(), std::vector<DTensor>(in.begin(), in.end()));
  keep_parameters(info, {in.data(), in.size()}, out);
  for (size_t o = 0; o < out.size(); ++o) values_[size_t(instruction.out[o])] = std::move(out[o]);
}

/// Has every value released after the last instruction that reads or makes it.
void CapturedStep::find_last_uses() {
  std::vector<bool> needed = constant_;
  for (int32_t result : results_) needed[size_t(result)] = true;
  kept_.assign(values_.size(), false);
  std::vector<bool> is_hoisted(values_.size(), false);
  for (const Instruction& instruction : weights_->instructions) {
    for (int32_t value : instruction.out) is_hoisted[size_t(value)] = true;
  }
  const auto release = [&](std::vector<Instruction>& list) {
    for (size_t i = list.size(); i-- > 0;) {
      Instruction& instruction = list[i];
      const auto use = [&](int32_t value) {
        if (needed[size_t(value)]) return;
        needed[size_t(value)] = true;
        instruction.released.push_back(value);
      };
      for (const Operand& operand : instruction.in) {
        if (operand.kind == Operand::Kind::value) use(operand.number);
      }
      for (int32_t value : instruction.out) use(value);
    }
  };
  for (const Instruction& instruction : instructions_) {
    for (const Operand& operand : instruction.in) {
      const bool keeps = operand.kind == Operand::Kind::value && is_hoisted[size_t(operand.number)];
      if (keeps) kept_[size_t(operand.number)] = needed[size_t(operand.number)] = true;
    }
  }
  for (int32_t result : results_) {
    if (is_hoisted[size_t(result)]) kept_[size_t(result)] = true;
  }
  for (size_t v = 0; v < kept_.size(); ++v) {
    if (kept_[v]) weights_->kept.push_back(static_cast<int32_t>(v));
  }
  release(instructions_);
  release(weights_->instructions);
}

StepCapturer::StepCapturer(const Batch& batch, const std::vector<Variable>& variables, int64_t step,
                           bool any_code, std::shared_ptr<PackedKernels> packed,
                           std::shared_ptr<Arena> buffer)
    : step_(step),
      any_code_(any_code),
      packed_(std::move(packed)),
      captured_(std::make_unique<CapturedStep>(std::move(buffer))) {
  for (const Variable& variable : variables) {
    variables_[variable.id()] = static_cast<int32_t>(captured_->variables_.size());
    const Placement& placement = variable.placement();
    captured_->variables_.push_back(
        {variable, variable.trainable(), placement.use, placement.reshard_after_forward});
  }
  each_tensor(batch, [this](const DTensor& value) {
    captured_->batch_.push_back(number(value));
    if (value.defined() && value.tag()) stop("a Variable's value is part of the batch");
  });
}

std::unique_ptr<CapturedStep> StepCapturer::finish(const std::vector<DTensor>& results) {
  for (const DTensor& result : results) {
    const Operand output = operand(result);
    if (output.kind != Operand::Kind::value) stop("the step's result was not computed by the step");
    captured_->results_.push_back(output.number);
  }
  if (!reason_.empty()) return nullptr;
  for (auto& captured : captured_->variables_) {
    if (captured.variable.has_value()) captured.sharding = captured.variable.value().sharding();
  }
  if (packed_) StepPasses(*captured_, packed_).run();
  captured_->find_last_uses();
  return std::move(captured_);
}

/// Assigns a new number to a value.
int32_t StepCapturer::number(const DTensor& value) {
  const auto next = static_cast<int32_t>(captured_->values_.size());
  captured_->values_.emplace_back();
  captured_->constant_.push_back(false);
  if (value.defined()) numbers_[value.id()] = next;
  return next;
}

StepCapturer::Operand StepCapturer::operand(const DTensor& value) {
  if (!value.defined()) return {};
  if (!value.tag()) {
    const auto it = numbers_.find(value.id());
    if (it != numbers_.end()) return {Operand::Kind::value, it->second};
    stop("a value was used that no operation made");
    return {};
  }
  const auto it = variables_.find(value.tag()->id);
  if (it == variables_.end()) {
    stop("a Variable was used that is not one of the model's weights or states");
    return {};
  }
  const Variable& variable = captured_->variables_[size_t(it->second)].variable;
  if (!variable.value().is(value)) stop("a former value of " + variable.path() + " was used");
  return {Operand::Kind::variable, it->second};
}

CapturedStep::Instruction& StepCapturer::add(std::span<const DTensor> in) {
  CapturedStep::Instruction instruction;
  for (const DTensor& value : in) instruction.in.push_back(operand(value));
  instruction.label = CommLabel::current();
  captured_->instructions_.push_back(std::move(instruction));
  return captured_->instructions_.back();
}

void StepCapturer::constant(const DTensor& value) {
  if (!reason_.empty()) return;
  const auto at = static_cast<size_t>(number(value));
  captured_->values_[at] = value;
  captured_->constant_[at] = true;
}

void StepCapturer::input(const DTensor& value, int64_t step,
                         std::function<at::Tensor(int64_t)> host) {
  // For example the step of an inner model with its own optimizer.
  if (step != step_) stop("random numbers were drawn for another step than the optimizer's");
  if (!reason_.empty()) return;
  const int32_t out = number(value);
  CapturedStep::Instruction& instruction = add({});
  instruction.host = std::move(host);
  instruction.mesh = value.mesh();
  instruction.out.push_back(out);
}

void StepCapturer::ran(const OpInfo& info, const std::shared_ptr<const void>& op,
                       const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
                       std::span<const DTensor> out) {
  if (!reason_.empty()) return;
  CapturedStep::Instruction& instruction = add(in);
  instruction.info = &info;
  instruction.op = op;
  instruction.plan = plan;
  for (const DTensor& value : out) {
    if (value.tag()) return stop(str(info.name, " returned a Variable's own value"));
    instruction.out.push_back(number(value));
  }
}

void StepCapturer::action(std::span<const DTensor> in, const SideEffect& run, Changes changes) {
  if (!reason_.empty()) return;
  CapturedStep::Instruction& instruction = add(in);
  instruction.action = run;
  instruction.changes = changes;
}

void StepCapturer::user_code(const std::string& what) {
  if (!any_code_) stop(what + " is user-defined code, and record_steps is not set");
}

void StepCapturer::stop(const std::string& why) {
  if (reason_.empty()) reason_ = why;
}

}  // namespace tessera::detail
