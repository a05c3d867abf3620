#pragma once

#include <functional>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/training/step_plan.hpp>

namespace tessera::detail {

/// The plan of a training step on batches like the data's, from running `train_step` without
/// numbers. The weights are placed; metrics that lie on the real mesh are the caller's to reset.
StepPlan plan_step(Layer& model, const OptimizerHandle& optimizer, const LayoutMap& layouts,
                   const Dataset& data, const PlanOptions& options,
                   const std::function<DTensor(const Batch&)>& train_step);

}  // namespace tessera::detail
