#include <tessera/framework/optimizer/internal/moving_averages.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {

bool MovingAverages::enabled(const Optimizer& optimizer) {
  const std::vector<OptimizerHandle> inner = optimizer.inner();
  return optimizer.averages_ ||
         std::any_of(inner.begin(), inner.end(),
                     [](const OptimizerHandle& each) { return enabled(*each); });
}

void MovingAverages::swap(Optimizer& optimizer) {
  stop_tracing("weights were exchanged for their moving averages");
  for (const OptimizerHandle& each : optimizer.inner()) swap(*each);
  // There are no averages before the first update.
  if (optimizer.averages_ && optimizer.iterations() > 0) optimizer.averages_->exchange();
}

bool MovingAverages::swapped(const Optimizer& optimizer) {
  const std::vector<OptimizerHandle> inner = optimizer.inner();
  return (optimizer.averages_ && optimizer.averages_->swapped_) ||
         std::any_of(inner.begin(), inner.end(),
                     [](const OptimizerHandle& each) { return swapped(*each); });
}

void MovingAverages::add(const Variable& variable, const Variable& average) {
  pairs_.push_back({variable, average});
}

void MovingAverages::update(double momentum) {
  std::vector<at::Tensor> averages, values;
  for (Pair& pair : pairs_) {
    const ShardingPtr& sharding = pair.average.value().sharding();
    const DTensor value = relayout_to(pair.variable.value(), sharding);
    for (const at::Tensor& block : pair.average.writable()) averages.push_back(block);
    for (const at::Tensor& block : value.blocks()) values.push_back(block);
  }
  for_each_list(
      averages,
      [&](size_t b) {
        const ProfileSpan span(SpanKind::aten, "average");
        averages[b].lerp_(values[b], 1 - momentum);
      },
      [&](const std::vector<size_t>& indices) {
        std::vector<at::Tensor> list = select(averages, indices);
        at::_foreach_lerp_(list, select(values, indices), 1 - momentum);
      });
}

void MovingAverages::overwrite() {
  for (Pair& pair : pairs_) pair.variable.assign(pair.average.value());
}

void MovingAverages::finalize(const std::vector<Variable>& variables) {
  for (Pair& pair : pairs_) {
    const bool listed =
        std::any_of(variables.begin(), variables.end(),
                    [&](const Variable& variable) { return variable.is(pair.variable); });
    if (!listed) continue;
    if (swapped_) {
      pair.average.assign(pair.variable.value());
    } else {
      pair.variable.assign(pair.average.value());
    }
  }
  swapped_ = false;
}

void MovingAverages::exchange() {
  for (Pair& pair : pairs_) {
    Blocks copies;
    for (const at::Tensor& block : pair.variable.value().blocks()) copies.push_back(block.clone());
    const DTensor previous(pair.variable.value().sharding(), std::move(copies));
    pair.variable.assign(pair.average.value());
    pair.average.assign(previous);
  }
  swapped_ = !swapped_;
}

}  // namespace tessera::detail
