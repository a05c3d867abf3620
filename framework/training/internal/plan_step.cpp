#include <tessera/framework/training/internal/plan_step.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/framework/mesh/internal/view.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/optimizer/internal/stored_slots.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/framework/training/internal/plan_peak.hpp>
#include <tessera/framework/training/internal/step_graph.hpp>

namespace tessera::detail {
namespace {

std::vector<double> bytes_of(const Shape& shape, at::ScalarType dtype, const Layout& layout) {
  return bytes_by_device(*intern(shape, dtype, layout));
}

void add_to(std::vector<double>& sum, const std::vector<double>& bytes) {
  sum.resize(std::max(sum.size(), bytes.size()));
  for (size_t i = 0; i < bytes.size(); ++i) sum[i] += bytes[i];
}

/// The rows of a plan, by layer path.
class Rows {
 public:
  explicit Rows(const Mesh& mesh) : devices_(static_cast<size_t>(mesh.size())) {}

  StepPlan::Row& add(const std::string& path, const std::string& type) {
    index_[path] = rows_.size();
    return append(path, type);
  }
  /// Adds the row for values of no layer.
  void add_loss() {
    loss_ = rows_.size();
    append("loss", "");
  }
  void add_layers(const Layer& model) {
    if (!model.own_weights().empty()) add(model.path(), model.class_name());
    for (const auto& layer : model.sublayers()) {
      if (layer->is_model()) {
        add_layers(*layer);
      } else if (seen_.insert(layer.get()).second) {
        add(layer->path(), layer->class_name());
      }
    }
  }
  /// Returns the row of a layer, or of a weight's layer.
  StepPlan::Row& of(const std::string& path) {
    const auto found = index_.find(path);
    if (found != index_.end()) return rows_[found->second];
    const size_t slash = path.rfind('/');
    if (slash != std::string::npos) return of(path.substr(0, slash));
    return rows_[loss_];
  }
  std::vector<StepPlan::Row> take() { return std::move(rows_); }

 private:
  StepPlan::Row& append(const std::string& path, const std::string& type) {
    const std::vector<double> none(devices_);
    rows_.push_back({path, type, none, none, none, none, none, none});
    return rows_.back();
  }

  size_t devices_;
  size_t loss_ = 0;
  std::vector<StepPlan::Row> rows_;
  std::map<std::string, size_t> index_;
  std::set<const Layer*> seen_;
};

}  // namespace

Batch abstract_batch(const Examples& sample, const LayoutMap& layouts, int64_t rows) {
  const auto shard = [&](const at::Tensor& tensor, const char* name, size_t index) {
    Shape shape = tensor.sizes().vec();
    shape[0] = rows;
    const Layout layout = layouts.data_layout(name, tensor.dim(), index);
    return DTensor(intern(shape, tensor.scalar_type(), layout), {});
  };
  Batch batch;
  batch.rows = rows;
  for (const at::Tensor& x : sample.x) batch.x.push_back(shard(x, "x", batch.x.size()));
  for (const at::Tensor& y : sample.y) batch.y.push_back(shard(y, "y", batch.y.size()));
  for (const at::Tensor& weight : sample.sample_weight) {
    batch.sample_weight.push_back(shard(weight, "sample_weight", batch.sample_weight.size()));
  }
  return batch;
}

namespace {

void add_batch(Rows& rows, const Batch& batch) {
  StepPlan::Row& row = rows.add("batch", "data");
  const auto add = [&](const std::vector<DTensor>& tensors) {
    for (const DTensor& tensor : tensors) {
      add_to(row.activations, bytes_by_device(*tensor.sharding()));
    }
  };
  add(batch.x);
  add(batch.y);
  add(batch.sample_weight);
}

/// Returns the bytes of a variable on every device of the plan's mesh; if it is stored on another
/// mesh, on the devices that both meshes have.
std::vector<double> stored_bytes(const Variable& variable, const Mesh& mesh) {
  const Layout& layout = variable.layout();
  const std::vector<double> bytes = bytes_of(variable.shape(), variable.dtype(), layout);
  std::vector<double> mesh_bytes(static_cast<size_t>(mesh.size()));
  if (layout.mesh().root() == mesh) {
    for (int64_t id : device_ids(layout.mesh())) mesh_bytes[size_t(id)] = bytes[size_t(id)];
    return mesh_bytes;
  }
  if (!mesh.is_local()) return bytes;
  for (size_t i = 0; i < mesh_bytes.size(); ++i) {
    const std::vector<Device>& devices = layout.mesh().local_devices();
    const auto at = std::find(devices.begin(), devices.end(), mesh.local_devices()[i]);
    if (at != devices.end()) mesh_bytes[i] = bytes[static_cast<size_t>(at - devices.begin())];
  }
  return mesh_bytes;
}

void add_weights(Rows& rows, const std::vector<Variable>& weights, const OptimizerHandle& optimizer,
                 const Mesh& mesh) {
  for (const Variable& weight : weights) {
    StepPlan::Row& row = rows.of(weight.path());
    add_to(row.weights, stored_bytes(weight, mesh));
    if (!optimizer || !weight.trainable()) continue;
    for (const Variable& slot : optimizer->variables_of(weight)) {
      if (!StoredSlots::rests(slot)) add_to(row.slots, stored_bytes(slot, mesh));
    }
  }
}

void add_planned_tensors(Rows& rows, const PlannedTensors& planned) {
  for (const auto& [path, sharding] : planned.saved) {
    add_to(rows.of(path).activations, bytes_by_device(*sharding));
  }
  for (const auto& [tensor, gathered] : planned.copies) {
    StepPlan::Row& row = rows.of(tensor.path);
    add_to(gathered ? row.gathered : row.casts, bytes_by_device(*tensor.sharding));
  }
  for (const auto& [path, sharding] : planned.gradients) {
    add_to(rows.of(path).gradients, bytes_by_device(*sharding));
  }
}

/// Returns what an update stages of slots that rest elsewhere: twice those of the weight with most.
std::vector<double> staged_slots(const std::vector<Variable>& weights,
                                 const OptimizerHandle& optimizer, const Mesh& mesh) {
  std::vector<double> most(static_cast<size_t>(mesh.size()));
  for (const Variable& weight : weights) {
    std::vector<double> bytes(most.size());
    if (!optimizer || !weight.trainable()) continue;
    for (const Variable& slot : optimizer->variables_of(weight)) {
      if (StoredSlots::rests(slot)) add_to(bytes, stored_bytes(slot, mesh));
    }
    for (size_t d = 0; d < most.size(); ++d) most[d] = std::max(most[d], 2 * bytes[d]);
  }
  return most;
}

/// Adds the peaks of a step's values; weights and slots are held throughout.
void add_peaks(StepPlan& plan, std::vector<StepPlan::Peak> peaks,
               const std::vector<double>& staged) {
  for (size_t device = 0; device < peaks.size(); ++device) {
    peaks[device].slots = staged[device];
    for (const StepPlan::Row& layer : plan.layers) {
      peaks[device].weights += layer.weights[device];
      peaks[device].slots += layer.slots[device];
    }
  }
  plan.peaks = std::move(peaks);
}

/// Throws StateError if a device needs more than a limit, naming the layer that needs most then.
void check_limit(const StepPlan& plan, double limit) {
  if (limit <= 0) return;
  const StepPlan::Peak& peak = plan.peaks[fullest_device(plan)];
  if (peak.total() <= limit) return;
  throw StateError(peak.place.empty() ? "plan" : peak.place,
                   str("a training step fits in ", readable_bytes(limit), " of each device"),
                   memory_text(plan), memory_advice());
}

bool contains_sharding(const std::vector<DTensor>& tensors, const ShardingPtr& sharding) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const DTensor& tensor) { return tensor.sharding() == sharding; });
}

}  // namespace

Batch abstract_like(const Batch& batch) {
  const auto abstract = [](const std::vector<DTensor>& values) {
    std::vector<DTensor> list;
    for (const DTensor& value : values) {
      if (!value.defined()) {
        list.emplace_back();
        continue;
      }
      list.emplace_back(intern(value.shape(), value.dtype(), abstract_layout(value.layout())),
                        Blocks());
    }
    return list;
  };
  Batch like;
  like.rows = batch.rows;
  like.x = abstract(batch.x);
  like.y = abstract(batch.y);
  like.sample_weight = abstract(batch.sample_weight);
  return like;
}

StepPlan plan_weights(Layer& model, const OptimizerHandle& optimizer, const Mesh& mesh) {
  StepPlan plan;
  plan.mesh = mesh;
  Rows rows(mesh);
  rows.add_layers(model);
  rows.add_loss();
  add_weights(rows, model.weights(), optimizer, mesh);
  plan.layers = rows.take();
  add_peaks(plan, std::vector<StepPlan::Peak>(static_cast<size_t>(mesh.size())),
            staged_slots(model.weights(), optimizer, mesh));
  return plan;
}

StepPlan plan_step(Layer& model, const OptimizerHandle& optimizer, const LayoutMap& layouts,
                   const std::function<Batch()>& make_batch, double memory_limit,
                   const std::function<DTensor(const Batch&)>& train_step) {
  const int64_t steps = optimizer ? optimizer->steps() : 0;
  StepPlan plan;
  plan.mesh = layouts.mesh();
  Rows rows(plan.mesh);
  CommLog log;
  PlannedTensors planned;
  StepGraph graph;
  std::vector<StepPlan::Peak> peaks;
  {
    const AbstractScope plans_only(plan.mesh, &planned);
    const CommLogScope logged(log);
    const Batch batch = make_batch();
    add_batch(rows, batch);
    GraphRecorder recorder(batch);
    {
      const TracerScope listening(&recorder);
      ops::relayout(train_step(batch), Layout());
    }
    graph = recorder.finish();
    std::erase_if(planned.saved, [&](const PlannedTensor& saved) {
      return contains_sharding(batch.x, saved.sharding) ||
             contains_sharding(batch.y, saved.sharding);
    });
    peaks = peaks_of(graph, abstract_mesh());
  }
  if (optimizer) optimizer->set_steps(steps);
  model.clear_losses();
  rows.add_layers(model);
  rows.add_loss();
  add_weights(rows, model.weights(), optimizer, plan.mesh);
  add_planned_tensors(rows, planned);
  plan.layers = rows.take();
  plan.collectives = log.entries();
  plan.flops = graph.flops();
  add_peaks(plan, std::move(peaks), staged_slots(model.weights(), optimizer, plan.mesh));
  check_limit(plan, memory_limit);
  return plan;
}

}  // namespace tessera::detail
