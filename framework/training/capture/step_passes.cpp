#include <tessera/framework/training/capture/step_passes.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>
#include <tessera/framework/ops/internal/bfloat16.hpp>
#include <tessera/framework/ops/internal/normalize.hpp>
#include <tessera/framework/ops/internal/padding.hpp>
#include <tessera/framework/ops/internal/reshape.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

namespace {

double bytes_of(const DTensor& value) {
  return shard_bytes(value.shape(), value.dtype(), value.layout());
}

}  // namespace

bool StepPasses::reads(const OpPlan& plan, size_t i) {
  return plan.inputs()[i]->layout == plan.propagation().inputs[i];
}

bool StepPasses::is_local(const OpPlan& plan) {
  for (size_t i = 0; i < plan.inputs().size(); ++i) {
    if (!reads(plan, i)) return false;
  }
  const std::vector<Layout>& outputs = plan.propagation().outputs;
  return std::none_of(outputs.begin(), outputs.end(),
                      [](const Layout& layout) { return layout.is_partial(); });
}

/// The instructions of a chain, in their order, and what the operations after the convolution read.
struct StepPasses::Chain {
  size_t conv = 0;
  /// The image without the padding that `windows` adds to it, and the operations that pad it.
  Operand image = {};
  ShardingPtr image_sharding = {};
  Windows windows = {};
  std::vector<size_t> pads = {};
  /// The reshape in front of a grouped convolution that is padded, to one axis of groups.
  std::optional<size_t> grouping = {};
  std::vector<size_t> followers = {};
  /// The reshape behind a grouped convolution, to one axis of channels.
  std::optional<size_t> reshape = {};
  Operand bias = {}, residual = {};
  std::optional<size_t> norm = {};
  ShardingPtr residual_sharding = {};
  FusedActivation activation = FusedActivation::none;
  bool ended = false;  ///< whether an activation ends it
};

void StepPasses::run() {
  const auto assigns = [](const Instruction& instruction) {
    return instruction.action && instruction.changes == Changes::variables;
  };
  const c10::InferenceMode inference;
  const NoRecording no_tape;
  const TracerScope untraced(nullptr);
  if (std::any_of(step_.instructions_.begin(), step_.instructions_.end(), assigns)) {
    return fuse_activations();
  }
  hoist_weights();
  fuse_convolutions();
  fuse_activations();
  // Weights that were computed here are those of now; they are computed again on the first replay,
  // since the memory of a capture may be reused.
  for (size_t v = 0; v < step_.values_.size(); ++v) {
    if (!step_.constant_[v]) step_.values_[v] = DTensor();
  }
}

bool StepPasses::is_weight(const Operand& operand) const {
  if (operand.kind == Operand::Kind::variable) return true;
  return operand.kind == Operand::Kind::value && from_weights_[size_t(operand.number)];
}

StepPasses::Operand StepPasses::uncast(const Operand& operand) const {
  if (operand.kind != Operand::Kind::value) return operand;
  for (const Instruction& instruction : step_.weights_->instructions) {
    if (!instruction.info || instruction.info->name != "cast") continue;
    if (instruction.out[0] != operand.number) continue;
    if (value_of(instruction.in[0]).dtype() == at::kFloat) return instruction.in[0];
  }
  return operand;
}

DTensor StepPasses::value_of(const Operand& operand) const {
  if (operand.kind == Operand::Kind::none) return {};
  if (operand.kind == Operand::Kind::value) return step_.values_[size_t(operand.number)];
  return step_.variables_[size_t(operand.number)].variable.value();
}

int32_t StepPasses::add_value() {
  step_.values_.emplace_back();
  step_.constant_.push_back(false);
  from_weights_.push_back(true);
  return static_cast<int32_t>(step_.values_.size()) - 1;
}

void StepPasses::hoist_weights() {
  from_weights_ = step_.constant_;
  std::vector<Instruction> rest;
  for (Instruction& instruction : step_.instructions_) {
    const auto& in = instruction.in;
    const bool frozen = instruction.info && !in.empty() &&
                        std::all_of(in.begin(), in.end(),
                                    [this](const Operand& operand) { return is_weight(operand); });
    const bool local = instruction.plan ? is_local(*instruction.plan)
                                        : instruction.info && instruction.info->name == "reshape";
    if (!frozen || !local) {
      rest.push_back(std::move(instruction));
      continue;
    }
    step_.run(instruction, 0);
    double before = 0, after = 0;
    for (const Operand& operand : in) before += bytes_of(value_of(operand));
    for (int32_t value : instruction.out) after += bytes_of(step_.values_[size_t(value)]);
    // Small values may grow: moments are float64.
    constexpr double small = 1 << 16;
    if (after > std::max(before, small)) {
      rest.push_back(std::move(instruction));
      continue;
    }
    for (int32_t value : instruction.out) from_weights_[size_t(value)] = true;
    step_.weights_->instructions.push_back(std::move(instruction));
  }
  step_.instructions_ = std::move(rest);
}

std::optional<size_t> StepPasses::only_reader(int32_t value) const {
  if (is_result(value)) return std::nullopt;
  const std::vector<size_t> all = readers(value);
  if (all.size() != 1) return std::nullopt;
  const auto& in = step_.instructions_[all[0]].in;
  const bool once = std::count(in.begin(), in.end(), Operand{Operand::Kind::value, value}) == 1;
  return once ? std::optional(all[0]) : std::nullopt;
}

bool StepPasses::extend(Chain& chain, size_t next) const {
  const Instruction& instruction = step_.instructions_[next];
  if (!instruction.info || chain.ended) return false;
  const std::string_view name = instruction.info->name;
  const size_t last = chain.followers.empty() ? chain.conv : chain.followers.back();
  const Operand own = {Operand::Kind::value, step_.instructions_[last].out[0]};
  const bool grouped = convolution_of(*step_.instructions_[chain.conv].info,
                                      step_.instructions_[chain.conv].op.get())
                           ->grouped;
  const bool added = chain.residual.kind != Operand::Kind::none;
  if (name == "reshape" && grouped && chain.followers.empty()) {
    chain.reshape = next;
  } else if (grouped && !chain.reshape) {
    return false;
  } else if (name == "relu" || name == "relu6") {
    chain.activation = name == "relu" ? FusedActivation::relu : FusedActivation::relu6;
    chain.ended = true;
  } else if (name == "norm_by") {
    const auto& in = instruction.in;
    const bool frozen = is_weight(in[1]) && is_weight(in[2]) && is_weight(in[3]);
    if (!(in[0] == own) || !frozen || chain.norm || added) return false;
    chain.norm = next;
  } else if (name == "add" && instruction.plan) {
    const size_t other = instruction.in[0] == own ? 1 : 0;
    const Operand& operand = instruction.in[other];
    const ShardingPtr& sharding = instruction.plan->inputs()[other];
    const Shape& shape = instruction.plan->inputs()[1 - other]->shape;
    if (is_weight(operand)) {
      const bool vector = sharding->shape == Shape{shape.back()};
      if (!vector || chain.bias.kind != Operand::Kind::none || chain.norm || added) return false;
      chain.bias = operand;
    } else {
      if (sharding->shape != shape || added || grouped) return false;
      chain.residual = operand;
      chain.residual_sharding = sharding;
    }
  } else {
    return false;
  }
  chain.followers.push_back(next);
  return true;
}

StepPasses::Chain StepPasses::chain_from(size_t conv) const {
  Chain chain{conv};
  take_padding(chain);
  size_t last = conv;
  while (const std::optional<size_t> next = only_reader(step_.instructions_[last].out[0])) {
    if (!extend(chain, *next)) break;
    last = *next;
  }
  return chain;
}

std::optional<size_t> StepPasses::producer_for(const Operand& operand, size_t reader) const {
  if (operand.kind != Operand::Kind::value || only_reader(operand.number) != reader) return {};
  for (size_t i = 0; i < reader; ++i) {
    const auto& out = step_.instructions_[i].out;
    if (!removed_[i] && out.size() == 1 && out[0] == operand.number) return i;
  }
  return {};
}

void StepPasses::take_padding(Chain& chain) const {
  const Instruction& conv = step_.instructions_[chain.conv];
  const Convolution& convolution = *convolution_of(*conv.info, conv.op.get());
  chain.image = conv.in[0];
  chain.image_sharding = conv.plan->inputs()[0];
  chain.windows = convolution.windows;
  std::optional<size_t> next = producer_for(conv.in[0], chain.conv);
  std::optional<size_t> grouping;
  if (next && convolution.grouped) {
    const Instruction& reshape = step_.instructions_[*next];
    if (!reshape.info || reshape.info->name != "reshape") return;
    grouping = next;
    next = producer_for(reshape.in[0], *next);
  }
  Shape image = chain.image_sharding->shape;
  while (next && step_.instructions_[*next].info) {
    const Instruction& pad = step_.instructions_[*next];
    const std::optional<Padding> padding = padding_of(*pad.info, pad.op.get());
    if (!padding || padding->value != 0 || padding->axis < 1) break;
    if (padding->axis > convolution.spatial()) break;
    WindowAxis& window = chain.windows.axes[size_t(padding->axis - 1)];
    window.before += padding->before;
    window.after += padding->after;
    image[size_t(padding->axis)] -= padding->before + padding->after;
    chain.image = pad.in[0];
    chain.pads.push_back(*next);
    next = producer_for(pad.in[0], *next);
  }
  if (chain.pads.empty()) return;
  chain.grouping = grouping;
  const Sharding& padded = *chain.image_sharding;
  chain.image_sharding = intern(image, padded.dtype, padded.layout, padded.groups);
}

void StepPasses::fuse_convolutions() {
  removed_.assign(step_.instructions_.size(), false);
  for (size_t i = 0; i < step_.instructions_.size(); ++i) {
    const Instruction& instruction = step_.instructions_[i];
    if (!instruction.info || !instruction.plan || removed_[i]) continue;
    if (!convolution_of(*instruction.info, instruction.op.get())) continue;
    const bool frozen = is_weight(instruction.in[1]) && !is_weight(instruction.in[0]);
    const Sharding& image = *instruction.plan->inputs()[0];
    const bool fast = image.dtype == at::kFloat ||
                      (is_fast_in_onednn(image.dtype) && !on_gpus(image.layout.mesh()));
    if (frozen && fast && is_local(*instruction.plan)) fuse(chain_from(i));
  }
  drop_removed();
}

void StepPasses::drop_removed() {
  size_t next = 0;
  for (size_t i = 0; i < step_.instructions_.size(); ++i) {
    if (!removed_[i]) std::swap(step_.instructions_[next++], step_.instructions_[i]);
  }
  step_.instructions_.resize(next);
}

namespace {

/// kernel and, if there are any, bias, and moments, scale and offset of a normalization -> in
/// `dtype` the bias of the convolution that gives the normalized result and, with a normalization,
/// factors of its kernel.
std::vector<DTensor> folded(std::span<const DTensor> in, bool grouped, double epsilon,
                            at::ScalarType dtype) {
  const DTensor& kernel = in[0];
  const Shape& shape = kernel.shape();
  const Shape channels(shape.end() - (grouped ? 2 : 1), shape.end());
  const auto vector = [&](const DTensor& values) {
    return ops::cast(ops::reshape(values, channels), at::kDouble);
  };
  DTensor bias = in[1].defined()
                     ? vector(in[1])
                     : filled(channels, 0, at::kDouble,
                              Layout::replicated(kernel.mesh(), int64_t(channels.size())));
  if (!in[2].defined()) return {ops::cast(bias, dtype)};
  const std::vector<DTensor> moments = ops::unstack(in[2]);
  const DTensor factor = ops::rsqrt(vector(moments[1]) + epsilon) * vector(in[3]);
  bias = (bias - vector(moments[0])) * factor + vector(in[4]);
  return {ops::cast(bias, dtype), ops::cast(factor, kernel.dtype())};
}

}  // namespace

StepPasses::Instruction StepPasses::fused_convolution(const std::shared_ptr<OpPlan>& plan,
                                                      const std::string& label) {
  Instruction fused;
  fused.info = &op_info<FusedConvOp>();
  fused.op = plan->op();
  fused.plan = plan;
  fused.label = label;
  return fused;
}

bool StepPasses::fuse(const Chain& chain) {
  Instruction& conv = step_.instructions_[chain.conv];
  Convolution convolution = *convolution_of(*conv.info, conv.op.get());
  convolution.windows = chain.windows;
  Instruction fold;
  fold.label = conv.label;
  // Weights are scaled before they are rounded to half precision.
  const Operand kernel = uncast(conv.in[1]);
  fold.in = {kernel, uncast(chain.bias), {}, {}, {}};
  double epsilon = 0;
  if (chain.norm) {
    const Instruction& norm = step_.instructions_[*chain.norm];
    for (size_t i = 1; i < 4; ++i) fold.in[i + 1] = norm.in[i];
    epsilon = norm_epsilon(*norm.info, norm.op.get());
  }
  const at::ScalarType dtype = chain.image_sharding->dtype;
  fold.computes = {"fold",
                   {static_cast<double>(convolution.grouped), epsilon, static_cast<double>(dtype)}};
  fold.compute = [grouped = convolution.grouped, epsilon, dtype](std::span<const DTensor> in) {
    return folded(in, grouped, epsilon, dtype);
  };
  const size_t values = step_.values_.size();
  fold.out.push_back(add_value());
  if (chain.norm) fold.out.push_back(add_value());
  step_.run(fold, 0);

  const bool adds = chain.residual.kind != Operand::Kind::none;
  const FusedConvOp op{convolution, chain.activation, chain.norm.has_value(), adds, packed_};
  std::vector<ShardingPtr> in = {chain.image_sharding, value_of(kernel).sharding()};
  for (int32_t value : fold.out) in.push_back(step_.values_[size_t(value)].sharding());
  if (adds) in.push_back(chain.residual_sharding);
  const auto plan = std::make_shared<OpPlan>(op_info<FusedConvOp>(), &op, in, 0);
  if (!is_local(*plan) ||
      !(plan->propagation().outputs[0] == conv.plan->propagation().outputs[0])) {
    step_.values_.resize(values);
    step_.constant_.resize(values);
    from_weights_.resize(values);
    return false;
  }

  Instruction fused = fused_convolution(plan, conv.label);
  fused.in = {chain.grouping ? conv.in[0] : chain.image, kernel};
  for (int32_t value : fold.out) fused.in.push_back({Operand::Kind::value, value});
  if (adds) fused.in.push_back(chain.residual);
  fused.out = conv.out;
  for (const at::Tensor& block : value_of(kernel).blocks()) {
    step_.weights_->packed_bytes += static_cast<double>(block.nbytes());
  }
  step_.weights_->instructions.push_back(std::move(fold));
  ++step_.fused_;
  for (size_t i : chain.pads) removed_[i] = true;
  if (chain.grouping) {
    Instruction& grouping = step_.instructions_[*chain.grouping];
    Instruction smaller;
    smaller.label = grouping.label;
    smaller.in = {chain.image};
    smaller.out = grouping.out;
    smaller.compute = [shape = chain.image_sharding->shape](std::span<const DTensor> x) {
      return std::vector{reshape_value(x[0], shape)};
    };
    grouping = std::move(smaller);
  }
  // A reshape stays behind the convolution; everything else goes.
  const size_t last = chain.followers.empty() ? chain.conv : chain.followers.back();
  const auto result = step_.instructions_[last].out;
  removed_[chain.conv] = true;
  for (size_t i : chain.followers) removed_[i] = true;
  size_t place = last;
  if (chain.reshape) {
    place = chain.conv;
    removed_[*chain.reshape] = false;
    step_.instructions_[*chain.reshape].out = result;
  } else {
    fused.out = result;
  }
  step_.instructions_[place] = std::move(fused);
  removed_[place] = false;
  return true;
}

}  // namespace tessera::detail
