#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/pipeline/make_schedule.hpp>
#include <tessera/framework/training/pipeline/pipeline_step.hpp>

#include "tests/support/difference.hpp"
#include "tests/support/pipelined_steps.hpp"
#include "tests/support/small_model.hpp"

namespace tessera::test {

/// How a model is trained in stages.
struct PipelineScheme {
  std::string schedule = "gpipe";
  int64_t devices = 2, microbatches = 4, chunks = 0;
};

inline std::string text(const PipelineScheme& scheme) {
  return scheme.schedule + ", " + std::to_string(scheme.devices) + " devices, " +
         std::to_string(scheme.microbatches) + " microbatches";
}

/// A model that is trained by pipelined steps, outside of fit.
class Pipelined {
 public:
  Pipelined(const ModelHandle& model, const LayoutMap& layouts, const PipelineScheme& scheme,
            const StagesByPath& stages)
      : model_(model),
        layouts_(layouts),
        stages_(stages),
        schedule_(detail::make_schedule({.name = scheme.schedule,
                                         .devices = scheme.devices,
                                         .microbatches = scheme.microbatches,
                                         .chunks = scheme.chunks})),
        meshes_(layouts.mesh(), "", schedule_.device_of, scheme.microbatches) {}

  double train(const Examples& examples) {
    const Batch batch = pack_in_microbatches(examples, layouts_, meshes_.rows());
    model_.model().clear_losses();
    const DTensor loss = step_for(batch).run(batch, model_->optimizer()->steps())[0];
    return loss.full().item<double>();
  }

 private:
  detail::PipelineStep& step_for(const Batch& batch) {
    for (const auto& step : steps_) {
      if (step.first == batch.rows) return *step.second;
    }
    detail::RecordedStep recorded = recorded_step(model_, batch, meshes_.rows());
    detail::StagedStep staged =
        detail::divide_into_stages(recorded.graph, 0, stages_of(recorded.graph.variables, stages_),
                                   static_cast<int32_t>(schedule_.stages()));
    steps_.emplace_back(batch.rows,
                        std::make_unique<detail::PipelineStep>(detail::PipelineParts{
                            std::move(recorded.graph), std::move(recorded.results),
                            std::move(recorded.variables), std::move(staged), meshes_, schedule_}));
    return *steps_.back().second;
  }

  ModelHandle model_;
  LayoutMap layouts_;
  StagesByPath stages_;
  detail::PipelineSchedule schedule_;
  detail::PipelineMeshes meshes_;
  std::vector<std::pair<int64_t, std::unique_ptr<detail::PipelineStep>>> steps_;
};

using MakeModel = std::function<ModelHandle(const LayoutMap&)>;

/// Trains two models that begin alike, one of them in stages, on batches of `batch_rows` of the
/// rows, the last of which may be shorter; returns what differs.
inline std::string training_difference(const MakeModel& make, const MeshDims& dims,
                                       const Examples& data, int64_t batch_rows, int64_t steps,
                                       const PipelineScheme& scheme, const StagesByPath& stages,
                                       double tolerance = 1e-12) {
  const LayoutMap layouts{create_mesh(dims)};
  const ModelHandle plain = make(layouts), staged = make(layouts);
  staged.set_weights(plain.get_weights());
  Pipelined pipeline(staged, layouts, scheme, stages);
  const int64_t rows = data.x[0].size(0);
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t begin = step * batch_rows % rows;
    const int64_t end = std::min(begin + batch_rows, rows);
    const auto part = [&](const std::vector<at::Tensor>& tensors) {
      std::vector<at::Tensor> parts;
      for (const at::Tensor& tensor : tensors) parts.push_back(tensor.slice(0, begin, end).clone());
      return parts;
    };
    Examples batch;
    batch.x = part(data.x);
    batch.y = part(data.y);
    batch.sample_weight = part(data.sample_weight);
    const Logs logs = plain.train_on_batch(batch);
    const auto loss = std::find_if(logs.begin(), logs.end(),
                                   [](const auto& value) { return value.first == "loss"; });
    const double expected = loss->second;
    const double actual = pipeline.train(batch);
    if (!(std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected)))) {
      return "loss of step " + std::to_string(step) + ": " + std::to_string(actual) + ", not " +
             std::to_string(expected);
    }
  }
  const std::vector<at::Tensor> expected = full_weights(plain), actual = full_weights(staged);
  for (size_t w = 0; w < expected.size(); ++w) {
    const std::string what = difference(actual[w], expected[w], tolerance, tolerance);
    if (!what.empty()) return "weight " + std::to_string(w) + ": " + what;
  }
  return "";
}

}  // namespace tessera::test
