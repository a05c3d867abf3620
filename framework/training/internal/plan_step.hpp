#pragma once

#include <functional>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/training/step_plan.hpp>

namespace tessera::detail {

/// Returns a batch of `rows` abstract rows like those of `sample`, sharded by the layouts.
Batch abstract_batch(const Examples& sample, const LayoutMap& layouts, int64_t rows);

/// Returns the plan of a training step on batches of `data`, by running `train_step` on abstract
/// tensors. Weights must be placed; the caller resets metrics stored on the real mesh.
StepPlan plan_step(Layer& model, const OptimizerHandle& optimizer, const LayoutMap& layouts,
                   const Dataset& data, const PlanOptions& options,
                   const std::function<DTensor(const Batch&)>& train_step);

}  // namespace tessera::detail
