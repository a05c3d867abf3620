#pragma once

#include <numeric>
#include <vector>

#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/framework/training/internal/plan_step.hpp>
#include <tessera/framework/training/internal/step_graph.hpp>
#include <tessera/tessera.hpp>

namespace tessera::test {

/// Returns the graph of a training step that is planned, of a compiled model that is built.
template <class ModelType>
detail::StepGraph planned_graph(const ModelType& model, const Examples& batch,
                                const LayoutMap& layouts) {
  using namespace detail;
  const int64_t rows = batch.x[0].size(0);
  model.plan(TensorDataset(batch), {.batch_size = rows});
  const int64_t steps = model->optimizer()->steps();
  StepGraph graph;
  {
    PlannedTensors planned;
    const AbstractScope plans_only(layouts.mesh(), &planned);
    const Batch abstract = abstract_batch(batch, layouts, rows);
    GraphRecorder recorder(abstract);
    {
      const TracerScope listening(&recorder);
      model.model().train_step(abstract);
    }
    graph = recorder.finish();
  }
  model->optimizer()->set_steps(steps);
  model.model().reset_metrics();
  model.model().clear_losses();
  return graph;
}

/// Returns the graph of a real training step, the second one.
template <class ModelType>
detail::StepGraph second_graph(const ModelType& model, const Examples& batch,
                               const LayoutMap& layouts) {
  using namespace detail;
  model.train_on_batch(batch);
  const Batch packed = pack_batch(Examples(batch), layouts);
  model.model().clear_losses();
  GraphRecorder recorder(packed);
  {
    const TracerScope listening(&recorder);
    model.model().train_step(packed);
  }
  return recorder.finish();
}

}  // namespace tessera::test
