#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/pipeline/pipeline_plan.hpp>
#include <tessera/framework/training/phase.hpp>
#include <tessera/framework/training/pipeline/pipeline_step.hpp>

namespace tessera::detail {

/// Returns what the layers of a model cost in a step, in the order in which the step calls them.
/// `layers` are their paths; an operation belongs to the layer whose path its own begins with.
std::vector<LayerCost> layer_costs(const StepGraph& graph, const std::vector<std::string>& layers);

/// The steps of a compiled model that is trained in stages.
class PipelinedSteps {
 public:
  using Results = std::vector<DTensor>;
  /// Plans a step for a batch, and returns its results.
  using PlanStep = std::function<Results(const Batch&)>;

  /// The model is built, and its weights have the layouts of a map that has a pipeline.
  PipelinedSteps(Layer& model, const LayoutMap& layouts, OptimizerHandle optimizer);

  /// Shards rows over microbatches, and then as the layouts say.
  Batch pack(Examples&& examples);
  /// Runs step number `step`. The first one divides the model into stages and moves its weights
  /// there; the first of each phase and shape of batch is recorded. Collective. Throws ConfigError
  /// for a model that cannot be divided or recorded.
  Results run(Phase phase, const Batch& batch, int64_t step, const PlanStep& plan);

  /// Facts about a training step, known before it runs.
  struct Plan {
    std::string text;  ///< stages, idle share and schedule
    double flops = 0;
  };
  /// Plans a training step on `rows` rows like those of a sample; divides the model if no step has.
  Plan plan(const Examples& sample, int64_t rows, const PlanStep& plan);

  /// Moves weights and slots to the devices of their stages, once the model is divided.
  void place_weights();
  /// Drops the recorded steps, after a change of what is trainable or of a layout.
  void forget() { recorded_.clear(); }

 private:
  struct Recorded {
    Phase phase;
    std::vector<ShardingPtr> batch;
    std::vector<bool> trainable;
    std::unique_ptr<PipelineStep> step;
  };

  PipelinePlan planned(const RecordedStep& recorded) const;
  void divide(const RecordedStep& recorded);
  int32_t stage_of(const std::string& weight) const;
  PipelineStep& recorded(Phase phase, const Batch& batch, const PlanStep& plan);
  RecordedStep record(const Batch& batch, const PlanStep& plan);
  PipelineSchedule schedule_of(Phase phase, int64_t microbatches) const;
  /// Returns the mesh of the rows of a batch.
  const Mesh& rows_of(int64_t rows);
  /// Returns the meshes of a divided model for batches of this number of microbatches.
  const PipelineMeshes& meshes_of(int64_t microbatches);

  Layer& model_;
  LayoutMap layouts_;
  OptimizerHandle optimizer_;
  std::map<int64_t, Mesh> rows_;                         ///< by microbatches
  std::vector<std::pair<std::string, int32_t>> stages_;  ///< by path of a layer of the model
  std::optional<PipelineSchedule> schedule_;             ///< that of training
  std::map<int64_t, PipelineMeshes> meshes_;             ///< by microbatches
  std::vector<Recorded> recorded_;
};

}  // namespace tessera::detail
