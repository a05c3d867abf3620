#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>

#include <map>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/optimizer/internal/gradient_clipping.hpp>
#include <tessera/framework/optimizer/internal/update_step.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/stacked_sums.hpp>

namespace tessera::detail {
namespace {

/// Adds `from` times a factor to `to`, block by block.
void accumulate_blocks(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from,
                       double factor) {
  for_each_list(
      to,
      [&](size_t b) {
        const ProfileSpan span(SpanKind::aten, "accumulate");
        to[b].add_(from[b], factor);
      },
      [&](const std::vector<size_t>& indices) {
        std::vector<at::Tensor> list = select(to, indices);
        at::_foreach_add_(list, select(from, indices), factor);
      });
}

/// Returns a copy in the dtype of `sharding`, which is otherwise that of the value, with zeros for
/// blocks that are not defined.
DTensor copy_of(const DTensor& value, const ShardingPtr& sharding) {
  Blocks copies;
  for (size_t b = 0; b < sharding->blocks.size(); ++b) {
    const BlockInfo& info = sharding->blocks[b];
    const DeviceMemory::For memory(info.devices.front());
    const at::Tensor& block = value.blocks()[b];
    copies.push_back(block.defined()
                         ? block.to(sharding->dtype, false, true)
                         : at::zeros(extents(info.intervals), block_options(*sharding, info)));
  }
  return DTensor(sharding, std::move(copies));
}

}  // namespace

bool GradientAccumulation::is_update_step() const {
  // A plan shows a step that updates.
  return is_abstract() ||
         (optimizer_.steps_ + 1) % options().gradient_accumulation_steps.value_or(1) == 0;
}

DimMask GradientAccumulation::dims_reduced_late(const Variable& variable, const DTensor& gradient,
                                                const Layout& target) const {
  const bool accumulates = options().gradient_accumulation_steps.has_value();
  if (!accumulates || !(gradient.mesh() == target.mesh())) return 0;
  const DimMask partial = gradient.layout().partial_dims();
  const DimMask late =
      variable.placement().reduce_at_end ? partial : partial & ~target.sharded_dims();
  return gradient.mesh().size_of(late) > 1 ? late : 0;
}

void GradientAccumulation::add_partial_sum(Optimizer::State& state, const DTensor& gradient) const {
  DTensor& sum = state.partial_sum;
  if (sum.defined() && !(sum.layout() == gradient.layout())) reduce(state);
  const ShardingPtr sharding = sharding_of_update(gradient, state.variable);
  if (!sum.defined()) {
    sum = copy_of(gradient, sharding);
    return DeviceMemory::label(sum, MemoryUse::gradients);
  }
  // A restored sum has a block for each device.
  if (sum.sharding() != sharding) sum = copy_of(relayout_to(sum, sharding), sharding);
  DeviceMemory::label(sum, MemoryUse::gradients);
  std::vector<at::Tensor> sums, gradients;
  for (size_t b = 0; b < sharding->blocks.size(); ++b) {
    if (!gradient.blocks()[b].defined()) continue;
    sums.push_back(sum.blocks()[b]);
    gradients.push_back(gradient.blocks()[b]);
  }
  accumulate_blocks(sums, gradients, 1);
}

void GradientAccumulation::reduce(Optimizer::State& state) const {
  if (!state.partial_sum.defined()) return;
  const CommLabel label(state.variable.path());
  const Layout& layout = Optimizer::update_layout(state.variable);
  const DTensor sum = std::exchange(state.partial_sum, DTensor());
  const DTensor reduced = sum.mesh() == layout.mesh()
                              ? relayout_to(sum, state.accumulator.value().sharding())
                              : copy_to_mesh_value(sum, layout);
  const Blocks& blocks = writable_blocks(state.accumulator);
  accumulate_blocks({blocks.begin(), blocks.end()}, blocks_of({reduced}),
                    1 / options().loss_scale_factor.value_or(1));
}

void GradientAccumulation::reduce() const {
  const UpdateScope scope;
  for (uint64_t id : optimizer_.order_) reduce(optimizer_.states_.at(id));
  for (const OptimizerHandle& each : optimizer_.inner()) GradientAccumulation(*each).reduce();
}

bool GradientAccumulation::add(Optimizer::Step& step) const {
  const double factor = 1 / options().loss_scale_factor.value_or(1);
  if (!options().gradient_accumulation_steps) {
    step.gradients = scaled(step.gradients, factor);
    return true;
  }
  std::vector<at::Tensor> sums, gradients;
  std::vector<bool> complete;  // gradients that are sums without an accumulator
  for (size_t i = 0; i < step.states.size(); ++i) {
    Optimizer::State& state = *step.states[i];
    complete.push_back(std::exchange(state.is_sum, false) && !state.accumulator.has_value());
    if (complete.back()) continue;
    for (const at::Tensor& block : writable_blocks(state.accumulator)) sums.push_back(block);
    for (const at::Tensor& block : step.gradients[i].blocks()) gradients.push_back(block);
  }
  accumulate_blocks(sums, gradients, factor);
  if (!is_update_step()) return false;
  const double mean = 1 / static_cast<double>(*options().gradient_accumulation_steps);
  std::vector<DTensor> totals;
  for (size_t i = 0; i < step.states.size(); ++i) {
    const DTensor total =
        complete[i] ? scaled({step.gradients[i]}, factor)[0] : step.states[i]->accumulator.value();
    totals.push_back(total);
  }
  step.gradients = scaled(totals, mean);
  return true;
}

void GradientAccumulation::reset() const {
  if (!options().gradient_accumulation_steps) return;
  std::vector<at::Tensor> sums;
  for (uint64_t id : optimizer_.order_) {
    Variable& accumulator = optimizer_.states_.at(id).accumulator;
    if (!accumulator.has_value()) continue;
    for (const at::Tensor& block : writable_blocks(accumulator)) sums.push_back(block);
  }
  for_each_list(
      sums, [&](size_t b) { sums[b].zero_(); },
      [&](const std::vector<size_t>& indices) { at::_foreach_zero_(select(sums, indices)); });
}

AccumulatedGradients::AccumulatedGradients(const std::vector<OptimizerHandle>& optimizers) {
  for (const OptimizerHandle& optimizer : optimizers) complete(*optimizer);
}

void AccumulatedGradients::complete(Optimizer& optimizer) {
  for (const OptimizerHandle& each : optimizer.inner()) complete(*each);
  for (uint64_t id : optimizer.order_) {
    Optimizer::State& state = optimizer.states_.at(id);
    if (!state.partial_sum.defined()) continue;
    // Another handle, since the reduction resolves the sum in all its handles.
    const DTensor& sum = state.partial_sum;
    before_.push_back({&state, state.accumulator, DTensor(sum.sharding(), sum.blocks())});
    state.accumulator = Variable(state.accumulator.spec());
    state.accumulator.set_trainable(false);
    state.accumulator.place(before_.back().accumulator.placement());
    if (before_.back().accumulator.has_value()) {
      state.accumulator.assign(before_.back().accumulator.value());
    }
    GradientAccumulation(optimizer).reduce(state);
  }
}

AccumulatedGradients::~AccumulatedGradients() {
  for (Before& each : before_) {
    each.state->accumulator = std::move(each.accumulator);
    each.state->partial_sum = std::move(each.partial_sum);
  }
}

std::vector<UnreducedSum> AccumulatedGradients::unreduced() const {
  std::vector<UnreducedSum> sums;
  for (const Before& each : before_) {
    sums.push_back({each.state->accumulator, stacked_sums(each.partial_sum)});
  }
  return sums;
}

void AccumulatedGradients::replace(const std::vector<OptimizerHandle>& optimizers,
                                   const std::vector<UnreducedSum>& sums) {
  std::map<uint64_t, DTensor> by_accumulator;
  for (const UnreducedSum& sum : sums) by_accumulator[sum.accumulator.id()] = sum.partial_sums;
  replace_all(optimizers, by_accumulator);
}

void AccumulatedGradients::replace_all(const std::vector<OptimizerHandle>& optimizers,
                                       const std::map<uint64_t, DTensor>& sums) {
  for (const OptimizerHandle& optimizer : optimizers) {
    replace_all(optimizer->inner(), sums);
    for (auto& [id, state] : optimizer->states_) {
      state.partial_sum = {};
      if (!state.accumulator.defined()) continue;
      const auto sum = sums.find(state.accumulator.id());
      if (sum != sums.end()) state.partial_sum = unstacked_sums(sum->second);
    }
  }
}

}  // namespace tessera::detail
