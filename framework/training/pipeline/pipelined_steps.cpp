#include <tessera/framework/training/pipeline/pipelined_steps.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/layer_states.hpp>
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

/// Returns the actions of the first microbatches of a schedule.
PipelineSchedule first_microbatches(PipelineSchedule schedule, int64_t microbatches) {
  schedule.microbatches = microbatches;
  for (std::vector<PipelineAction>& actions : schedule.actions) {
    std::erase_if(actions,
                  [&](const PipelineAction& action) { return action.microbatch >= microbatches; });
  }
  return schedule;
}

/// Throws ConfigError for a layer that keeps values of rows for the next batch, which planning
/// leaves out.
void refuse_states(Layer& model) {
  for (const auto& [path, layer] : layers_with_states(model)) {
    if (layer->states().empty()) continue;
    throw ConfigError(path, "a layer of a pipeline keeps nothing of a batch for the next one",
                      "a stateful layer",
                      "set stateful to false, or train the model without stages");
  }
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
    : model_(model), layouts_(layouts), optimizer_(std::move(optimizer)) {
  rows_of(layouts_.mesh().size() * layouts_.pipeline()->microbatches);
}

const Mesh& PipelinedSteps::rows_of(int64_t rows) {
  const int64_t microbatches = layouts_.microbatches_of(rows);
  const auto known = rows_.find(microbatches);
  if (known != rows_.end()) return known->second;
  const PipelineMeshes meshes(layouts_.mesh(), "", {0}, microbatches);
  return rows_.emplace(microbatches, meshes.rows()).first->second;
}

const PipelineMeshes& PipelinedSteps::meshes_of(int64_t microbatches) {
  const auto known = meshes_.find(microbatches);
  if (known != meshes_.end()) return known->second;
  const PipelineMeshes meshes(layouts_.mesh(), layouts_.pipeline()->stages, schedule_->device_of,
                              microbatches);
  return meshes_.emplace(microbatches, meshes).first->second;
}

Batch PipelinedSteps::pack(Examples&& examples) {
  Batch batch;
  batch.rows = examples.rows();
  const Mesh& rows = rows_of(batch.rows);
  const auto shard = [&](std::vector<at::Tensor>& tensors, const char* name,
                         std::vector<DTensor>& values) {
    for (at::Tensor& tensor : tensors) {
      const Layout data = layouts_.data_layout(name, tensor.dim(), values.size());
      const Layout layout = with_microbatches(data, rows);
      values.push_back(examples.part ? pack_rows(std::move(tensor), examples.part->rows,
                                                 examples.part->of, layout)
                                     : tessera::pack(std::move(tensor), layout));
      DeviceMemory::label(values.back(), MemoryUse::batch);
    }
  };
  // Shards that the data have made themselves are those of a batch without microbatches.
  for (const DTensor& x : examples.placed_x) {
    batch.x.push_back(copy_to_mesh_value(x, with_microbatches(x.layout(), rows)));
    DeviceMemory::label(batch.x.back(), MemoryUse::batch);
  }
  shard(examples.x, "x", batch.x);
  shard(examples.y, "y", batch.y);
  shard(examples.sample_weight, "sample_weight", batch.sample_weight);
  return batch;
}

RecordedStep PipelinedSteps::record(const Batch& batch, const PlanStep& plan) {
  std::vector<Variable> known = model_.weights();
  if (optimizer_) {
    const std::vector<Variable> owned = optimizer_->variables();
    known.insert(known.end(), owned.begin(), owned.end());
  }
  return record_step(rows_of(batch.rows), batch, known, plan);
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
  refuse_states(model_);
  std::vector<std::string> paths;
  for (const Variable& weight : model_.weights()) paths.push_back(weight.path());
  add_paths(model_, paths);
  layouts_.check_stages_used(paths);
  const PipelinePlan plan = planned(recorded);
  for (size_t l = 0; l < plan.layers.size(); ++l) {
    stages_.emplace_back(plan.layers[l], static_cast<int32_t>(plan.split.stage_of[l]));
  }
  schedule_ = plan.schedule;
  place_weights();
}

PipelinedSteps::Plan PipelinedSteps::plan(const Examples& sample, int64_t rows,
                                          const PlanStep& plan) {
  Batch batch;
  batch.rows = rows;
  const Mesh& mesh = rows_of(rows);
  const auto shaped = [&](const std::vector<at::Tensor>& tensors, const char* name,
                          std::vector<DTensor>& values) {
    for (const at::Tensor& tensor : tensors) {
      Shape shape = tensor.sizes().vec();
      shape[0] = rows;
      const Layout data = layouts_.data_layout(name, tensor.dim(), values.size());
      values.emplace_back(intern(shape, tensor.scalar_type(), with_microbatches(data, mesh)),
                          Blocks());
    }
  };
  shaped(sample.x, "x", batch.x);
  shaped(sample.y, "y", batch.y);
  shaped(sample.sample_weight, "sample_weight", batch.sample_weight);
  const RecordedStep recorded = record(batch, plan);
  if (!schedule_) divide(recorded);
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
  if (!schedule_) return;
  const PipelineMeshes& meshes = meshes_of(schedule_->microbatches);
  for (Variable weight : model_.weights()) {
    weight.place(on_mesh(weight.placement(), meshes.weights_of(stage_of(weight.path()))));
  }
  if (optimizer_) optimizer_->build(model_.trainable_weights());
}

PipelineSchedule PipelinedSteps::schedule_of(Phase phase, int64_t microbatches) const {
  const PipelineSchedule schedule = first_microbatches(*schedule_, microbatches);
  return phase == Phase::train ? schedule : forward_schedule(schedule);
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
  if (!schedule_) divide(step);
  std::vector<int32_t> stages;
  for (const std::string& path : step.graph.variables) stages.push_back(stage_of(path));
  StagedStep staged = divide_into_stages(step.graph, 0, std::move(stages),
                                         static_cast<int32_t>(schedule_->stages()));
  const int64_t microbatches = layouts_.microbatches_of(batch.rows);
  PipelineParts parts = {std::move(step.graph),     std::move(step.results),
                         std::move(step.variables), std::move(staged),
                         meshes_of(microbatches),   schedule_of(phase, microbatches)};
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
