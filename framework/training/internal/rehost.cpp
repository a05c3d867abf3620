#include <tessera/framework/training/internal/rehost.hpp>

#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/nn/internal/layer_states.hpp>
#include <tessera/framework/nn/internal/placed_values.hpp>
#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

/// A replicated value that this process has in full.
struct KeptValue {
  Variable variable;
  at::Tensor full;
};

/// Returns a value on the variable's present mesh, of which this process has all elements.
DTensor on_present_mesh(const KeptValue& kept) {
  const Variable& variable = kept.variable;
  const ShardingPtr sharding = intern(variable.shape(), variable.dtype(), variable.layout());
  Blocks blocks;
  for (const BlockInfo& info : sharding->blocks) {
    at::Tensor part = kept.full;
    for (size_t axis = 0; axis < info.intervals.size(); ++axis) {
      const Interval interval = info.intervals[axis];
      part = part.narrow(static_cast<int64_t>(axis), interval.lo, interval.size());
    }
    blocks.push_back(moved_to(part.clone(), block_device(sharding->mesh(), info)));
  }
  return DTensor(sharding, std::move(blocks));
}

}  // namespace

bool rehost(Trainer& trainer, TrainingState& state, const Mesh& mesh, bool keep) {
  const c10::InferenceMode inference;
  const Mesh before = state.layouts.mesh();
  Layer& layer = trainer.layer();
  const OptimizerHandle& optimizer = state.optimizer();
  const bool built = optimizer && optimizer->built();

  // What was on its way belongs to a step that does not count.
  state.losses.clear();
  layer.clear_losses();
  for (const Phase phase : {Phase::train, Phase::test, Phase::predict}) {
    state.captures.of(phase).forget();
  }
  state.calls.forget();
  state.metrics.reset();
  if (optimizer) {
    optimizer->reducer().reset();
    optimizer->reducer().take_non_finite(/*all=*/true);
    AccumulatedGradients::replace({optimizer}, {});
  }
  for (const auto& [path, stateful] : layers_with_states(layer)) stateful->set_states({});

  std::vector<Variable> all = layer.weights();
  if (built) {
    const std::vector<Variable> slots = optimizer->variables();
    all.insert(all.end(), slots.begin(), slots.end());
  }
  bool kept_all = true;
  std::vector<KeptValue> kept;
  for (Variable& variable : all) {
    if (!variable.has_value()) continue;
    if (keep && variable.layout().is_fully_replicated() && !before.local_ids().empty()) {
      kept.push_back({variable, variable.value().blocks().at(0)});
    } else {
      kept_all = false;
    }
    drop_value(variable);
  }

  state.layouts = state.layouts.on_mesh(mesh);
  state.options.layouts = state.layouts;
  state.options.mesh = mesh;
  if (state.placed) {
    place_layers(layer, state.layouts);
    if (built) optimizer->build(layer.trainable_weights());
  }
  for (KeptValue& value : kept) value.variable.assign(on_present_mesh(value));

  state.exchange.move_to(mesh);
  if (thread_state().default_mesh == before) thread_state().default_mesh = mesh;
  return kept_all;
}

}  // namespace tessera::detail
