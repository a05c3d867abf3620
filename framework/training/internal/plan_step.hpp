#pragma once

#include <exception>
#include <functional>
#include <string>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/training/step_plan.hpp>

namespace tessera::detail {

/// Returns a batch of `rows` abstract rows like those of `sample`, sharded by the layouts.
Batch abstract_batch(const Examples& sample, const LayoutMap& layouts, int64_t rows);

/// Returns a batch of abstract values with the shapes, dtypes and layouts of `batch`.
Batch abstract_like(const Batch& batch);

/// Returns the plan of a training step on the batch that `make_batch` returns within an
/// AbstractScope, by running `train_step` on it. Weights must be placed; the caller resets metrics
/// stored on the real mesh. Throws StateError if a device needs more than `memory_limit` bytes,
/// unless that is 0.
StepPlan plan_step(Layer& model, const OptimizerHandle& optimizer, const LayoutMap& layouts,
                   const std::function<Batch()>& make_batch, double memory_limit,
                   const std::function<DTensor(const Batch&)>& train_step);

/// Returns a plan of weights and slots alone, which must be placed.
StepPlan plan_weights(Layer& model, const OptimizerHandle& optimizer, const Mesh& mesh);

}  // namespace tessera::detail
