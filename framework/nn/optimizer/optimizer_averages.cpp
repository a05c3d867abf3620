#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/nn/optimizer/for_each_block.hpp>
#include <tessera/framework/nn/optimizer/optimizer.hpp>
#include <tessera/framework/tensor/relayout.hpp>
#include <tessera/framework/tensor/tracer.hpp>

namespace tessera {

void Optimizer::update_averages() {
  if (!options_.use_ema) return;
  const double momentum = iterations() == 0 ? 0 : options_.ema_momentum;
  std::vector<at::Tensor> averages, values;
  for (uint64_t id : order_) {
    State& state = states_.at(id);
    const ShardingPtr& form = state.average.value().sharding();
    const DTensor value = relayout_to(state.variable.value(), form);
    for (const at::Tensor& block : state.average.writable()) averages.push_back(block);
    for (const at::Tensor& block : value.blocks()) values.push_back(block);
  }
  for_each_block(averages, [&](size_t b) {
    const ProfileSpan span(SpanKind::aten, "average");
    averages[b].lerp_(values[b], 1 - momentum);
  });
}

/// Every ema_overwrite_frequency iterations the weights become their means.
void Optimizer::overwrite_weights() {
  const auto every = options_.ema_overwrite_frequency;
  if (!options_.use_ema || !every || (iterations() + 1) % *every != 0) return;
  for (uint64_t id : order_) {
    State& state = states_.at(id);
    state.variable.assign(state.average.value());
  }
}

void Optimizer::finalize_variable_values(const std::vector<Variable>& variables) {
  for (const OptimizerHandle& each : inner()) {
    std::vector<Variable> known;
    std::copy_if(variables.begin(), variables.end(), std::back_inserter(known),
                 [&](const Variable& variable) { return each->knows(variable); });
    each->finalize_variable_values(known);
  }
  // Without a step there are no means yet.
  if (!options_.use_ema || steps_ == 0) return;
  for (Variable variable : variables) {
    Variable average = state_of(variable).average;
    if (swapped_) {
      average.assign(variable.value());
    } else {
      variable.assign(average.value());
    }
  }
  swapped_ = false;
}

bool Optimizer::keeps_averages() const {
  const std::vector<OptimizerHandle> all = inner();
  return options_.use_ema ||
         std::any_of(all.begin(), all.end(),
                     [](const OptimizerHandle& each) { return each->keeps_averages(); });
}

void Optimizer::swap_averages() {
  stop_tracing("weights were exchanged for their moving averages");
  for (const OptimizerHandle& each : inner()) each->swap_averages();
  if (!options_.use_ema || steps_ == 0) return;
  for (uint64_t id : order_) {
    State& state = states_.at(id);
    Blocks copies;
    for (const at::Tensor& block : state.variable.value().blocks()) copies.push_back(block.clone());
    const DTensor former(state.variable.value().sharding(), std::move(copies));
    state.variable.assign(state.average.value());
    state.average.assign(former);
  }
  swapped_ = !swapped_;
}

bool Optimizer::averages_swapped() const {
  const std::vector<OptimizerHandle> all = inner();
  return swapped_ || std::any_of(all.begin(), all.end(), [](const OptimizerHandle& each) {
           return each->averages_swapped();
         });
}

}  // namespace tessera
