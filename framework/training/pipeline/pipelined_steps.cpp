#include <tessera/framework/training/pipeline/pipelined_steps.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/transfer.hpp>

namespace tessera::detail {

namespace {

/// Whether a path is that of a layer, or of something inside it.
bool is_in_layer(const std::string& path, const std::string& layer) {
  if (!path.starts_with(layer)) return false;
  return path.size() == layer.size() || path[layer.size()] == '/';
}

std::vector<ShardingPtr> shardings_of(const Batch& batch) {
  std::vector<ShardingPtr> all;
  for (const auto* list : {&batch.x, &batch.y, &batch.sample_weight}) {
    for (const DTensor& value : *list) {
      all.push_back(value.defined() ? value.sharding() : nullptr);
    }
    all.push_back(nullptr);
  }
  return all;
}

/// Returns the schedule of a pass without gradients: each stage takes one microbatch after the
/// other.
PipelineSchedule forward_schedule(const PipelineSchedule& training) {
  PipelineSchedule forward = {training.microbatches, training.device_of, {}};
  forward.actions.resize(training.actions.size());
  for (int64_t i = 0; i < training.microbatches; ++i) {
    for (int64_t stage = 0; stage < training.stages(); ++stage) {
      const auto device = static_cast<size_t>(training.device_of[size_t(stage)]);
      forward.actions[device].push_back({stage, ActionKind::forward, i});
    }
  }
  return forward;
}

void add_paths(const Layer& layer, std::vector<std::string>& paths) {
  paths.push_back(layer.path());
  for (const auto& inner : layer.sublayers()) add_paths(*inner, paths);
}

Placement on_mesh(const Placement& placement, const Mesh& mesh) {
  const auto moved = [&](const Layout& layout) {
    return Layout::from_axes(mesh, layout.axes(), layout.partial_dims(), layout.partial_kind());
  };
  Placement result = placement;
  result.layout = moved(placement.layout);
  if (placement.use) result.use = moved(*placement.use);
  if (placement.slots) result.slots = moved(*placement.slots);
  return result;
}

}  // namespace

std::vector<LayerCost> layer_costs(const StepGraph& graph, const std::vector<std::string>& layers) {
  const StagedStep one_stage =
      divide_into_stages(graph, 0, std::vector<int32_t>(graph.variables.size()), 1);
  std::vector<LayerCost> costs;
  const auto cost_of = [&](const std::string& place) -> StageCost* {
    for (const std::string& layer : layers) {
      if (!is_in_layer(place, layer)) continue;
      for (LayerCost& known : costs) {
        if (known.path == layer) return &known.cost;
      }
      costs.push_back({layer, {0, 0, 0}});
      return &costs.back().cost;
    }
    return nullptr;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const double flops = graph.nodes[n].flops;
    StageCost* const cost = cost_of(graph.nodes[n].place);
    if (!cost) continue;
    switch (one_stage.nodes[n].turn) {
      case NodeTurn::forward:
        cost->forward += flops;
        break;
      case NodeTurn::input_gradient:
        cost->input_gradient += flops;
        break;
      case NodeTurn::weight_gradient:
        cost->weight_gradient += flops;
        break;
      default:
        break;
    }
  }
  return costs;
}

PipelinedSteps::PipelinedSteps(Layer& model, const LayoutMap& layouts, OptimizerHandle optimizer)
    : model_(model),
      layouts_(layouts),
      optimizer_(std::move(optimizer)),
      rows_(PipelineMeshes(layouts.mesh(), "", {0}, layouts.pipeline()->microbatches).rows()) {}

Batch PipelinedSteps::pack(Examples&& examples) const {
  Batch batch;
  batch.rows = examples.rows();
  const auto shard = [&](std::vector<at::Tensor>& tensors, const char* name,
                         std::vector<DTensor>& values) {
    for (at::Tensor& tensor : tensors) {
      const Layout data = layouts_.data_layout(name, tensor.dim(), values.size());
      const Layout layout = with_microbatches(data, rows_);
      values.push_back(examples.part ? pack_rows(std::move(tensor), examples.part->rows,
                                                 examples.part->of, layout)
                                     : tessera::pack(std::move(tensor), layout));
      DeviceMemory::label(values.back(), MemoryUse::batch);
    }
  };
  // Shards that the data have made themselves are those of a batch without microbatches.
  for (const DTensor& x : examples.placed_x) {
    batch.x.push_back(copy_to_mesh_value(x, with_microbatches(x.layout(), rows_)));
    DeviceMemory::label(batch.x.back(), MemoryUse::batch);
  }
  shard(examples.x, "x", batch.x);
  shard(examples.y, "y", batch.y);
  shard(examples.sample_weight, "sample_weight", batch.sample_weight);
  return batch;
}

RecordedStep PipelinedSteps::record(const Batch& batch, const PlanStep& plan) const {
  std::vector<Variable> known = model_.weights();
  if (optimizer_) {
    const std::vector<Variable> owned = optimizer_->variables();
    known.insert(known.end(), owned.begin(), owned.end());
  }
  return record_step(rows_, batch, known, plan);
}

PipelinePlan PipelinedSteps::planned(const RecordedStep& recorded) const {
  const PipelineParallelOptions& options = *layouts_.pipeline();
  const Mesh& mesh = layouts_.mesh();
  std::vector<std::string> paths;
  for (const auto& layer : model_.sublayers()) paths.push_back(layer->path());
  std::vector<LayerCost> costs = layer_costs(recorded.graph, paths);
  for (LayerCost& layer : costs) layer.stage = layouts_.find_stage(layer.path);
  return plan_pipeline(options, mesh.dim_size(mesh.index(options.stages)), costs);
}

/// Divides the model by what its layers cost in a step.
void PipelinedSteps::divide(const RecordedStep& recorded) {
  std::vector<std::string> paths;
  for (const Variable& weight : model_.weights()) paths.push_back(weight.path());
  add_paths(model_, paths);
  layouts_.check_stages_used(paths);
  const PipelinePlan plan = planned(recorded);
  for (size_t l = 0; l < plan.layers.size(); ++l) {
    stages_.emplace_back(plan.layers[l], static_cast<int32_t>(plan.split.stage_of[l]));
  }
  schedule_ = plan.schedule;
  meshes_.emplace(layouts_.mesh(), plan.options.stages, schedule_->device_of,
                  plan.options.microbatches);
  place_weights();
}

PipelinedSteps::Plan PipelinedSteps::plan(const Examples& sample, int64_t rows,
                                          const PlanStep& plan) {
  Batch batch;
  batch.rows = rows;
  const auto shaped = [&](const std::vector<at::Tensor>& tensors, const char* name,
                          std::vector<DTensor>& values) {
    for (const at::Tensor& tensor : tensors) {
      Shape shape = tensor.sizes().vec();
      shape[0] = rows;
      const Layout data = layouts_.data_layout(name, tensor.dim(), values.size());
      values.emplace_back(intern(shape, tensor.scalar_type(), with_microbatches(data, rows_)),
                          Blocks());
    }
  };
  shaped(sample.x, "x", batch.x);
  shaped(sample.y, "y", batch.y);
  shaped(sample.sample_weight, "sample_weight", batch.sample_weight);
  const RecordedStep recorded = record(batch, plan);
  if (!meshes_) divide(recorded);
  return {to_string(planned(recorded)), recorded.graph.flops()};
}

int32_t PipelinedSteps::stage_of(const std::string& weight) const {
  if (const std::optional<int64_t> stage = layouts_.find_stage(weight)) {
    return static_cast<int32_t>(*stage);
  }
  for (const auto& [layer, stage] : stages_) {
    if (is_in_layer(weight, layer)) return stage;
  }
  return 0;
}

void PipelinedSteps::place_weights() {
  if (!meshes_) return;
  for (Variable weight : model_.weights()) {
    weight.place(on_mesh(weight.placement(), meshes_->weights_of(stage_of(weight.path()))));
  }
  if (optimizer_) optimizer_->build(model_.trainable_weights());
}

PipelineSchedule PipelinedSteps::schedule_of(Phase phase) const {
  return phase == Phase::train ? *schedule_ : forward_schedule(*schedule_);
}

PipelineStep& PipelinedSteps::recorded(Phase phase, const Batch& batch, const PlanStep& plan) {
  const std::vector<ShardingPtr> shardings = shardings_of(batch);
  std::vector<bool> trainable;
  for (const Variable& weight : model_.weights()) trainable.push_back(weight.trainable());
  for (const Recorded& known : recorded_) {
    if (known.phase == phase && known.batch == shardings && known.trainable == trainable) {
      return *known.step;
    }
  }
  RecordedStep step = record(batch, plan);
  if (!meshes_) divide(step);
  std::vector<int32_t> stages;
  for (const std::string& path : step.graph.variables) stages.push_back(stage_of(path));
  StagedStep staged = divide_into_stages(step.graph, 0, std::move(stages),
                                         static_cast<int32_t>(schedule_->stages()));
  PipelineParts parts = {std::move(step.graph),
                         std::move(step.results),
                         std::move(step.variables),
                         std::move(staged),
                         *meshes_,
                         schedule_of(phase)};
  recorded_.push_back(
      {phase, shardings, std::move(trainable), std::make_unique<PipelineStep>(std::move(parts))});
  return *recorded_.back().step;
}

PipelinedSteps::Results PipelinedSteps::run(Phase phase, const Batch& batch, int64_t step,
                                            const PlanStep& plan) {
  Results results = recorded(phase, batch, plan).run(batch, step);
  // One number, a loss, is wanted on every process; outputs are when they are read in full.
  for (DTensor& result : results) {
    if (phase == Phase::predict || !result.mesh().is_view()) continue;
    result = transfer_value(result, Layout::replicated(result.mesh().root(), result.rank()));
  }
  return results;
}

}  // namespace tessera::detail
