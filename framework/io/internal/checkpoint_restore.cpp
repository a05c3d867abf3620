#include <tessera/framework/io/internal/checkpoint_restore.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/io/internal/checkpoint_source.hpp>
#include <tessera/framework/io/internal/checkpoint_state.hpp>
#include <tessera/framework/io/internal/read_blocks.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/nn/internal/layer_states.hpp>
#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>
#include <tessera/framework/optimizer/internal/stored_slots.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

/// An opened checkpoint with its state, read before anything is changed.
struct Opened {
  explicit Opened(CheckpointSource& source)
      : reader(source), state(state_from_json(reader.state(), reader.name())) {
    if (state.history) state.history->steps = reader.step_losses();
  }
  CheckpointSource& reader;
  CheckpointState state;
};

/// A checkpoint in a folder.
class FolderSource final : public CheckpointSource {
 public:
  explicit FolderSource(const std::string& folder) : reader_(folder) {}
  const std::string& name() const override { return reader_.folder(); }
  const std::vector<CheckpointTensor>& tensors() const override { return reader_.tensors(); }
  const CheckpointTensor* find(std::string_view name) const override { return reader_.find(name); }
  const Json& state() const override { return reader_.state(); }
  std::vector<double> step_losses() const override { return read_step_losses(reader_); }
  void read(std::string_view name, const Shape& begin, const Shape& end, std::span<std::byte> out,
            CheckpointShare share) const override {
    reader_.read(name, begin, end, out, share);
  }
  uint64_t bytes_read() const override { return reader_.bytes_read(); }

 private:
  CheckpointReader reader_;
};

/// A tensor to be read, and its target sharding.
struct TargetTensor {
  std::string name;
  ShardingPtr sharding;
  bool is_initial = false;  ///< not in the checkpoint: takes its initial value
  DTensor value = {};
};

std::vector<std::string> names_in(const CheckpointSource& reader) {
  std::vector<std::string> names;
  for (const CheckpointTensor& tensor : reader.tensors()) names.push_back(tensor.name);
  return names;
}

/// Builds unbuilt optimizers with slots for the variables that have slots in the checkpoint.
void build_optimizers(const CheckpointParts& parts, const CheckpointSource& reader) {
  const std::vector<OptimizerHandle> optimizers = optimizers_of(parts);
  for (size_t i = 0; i < optimizers.size(); ++i) {
    if (optimizers[i]->built()) continue;
    const std::string prefix = optimizer_prefix(i) + "/";
    std::set<std::string> paths;
    for (const std::string& name : names_in(reader)) {
      if (!name.starts_with(prefix)) continue;
      paths.insert(name.substr(prefix.size(), name.rfind('/') - prefix.size()));
    }
    std::vector<Variable> variables;
    for (const Variable& weight : weights_of(parts)) {
      if (paths.count(weight.path())) variables.push_back(weight);
    }
    optimizers[i]->build(variables);
  }
}

void check_class(const Optimizer& optimizer, const OptimizerState& state,
                 const std::string& folder) {
  if (optimizer.class_name() != state.class_name) {
    throw CheckpointMismatch(
        folder, "the optimizer has the checkpoint's class " + in_quotes(state.class_name),
        optimizer.class_name(), "compile with that optimizer, or restore with weights_only");
  }
  const std::vector<OptimizerHandle> inner = optimizer.inner();
  if (inner.size() != state.inner.size()) {
    throw CheckpointMismatch(
        folder,
        str(state.class_name, " has as many inner optimizers as in the checkpoint, ",
            state.inner.size()),
        str(inner.size()), "pass the same inner optimizers, or restore with weights_only");
  }
  for (size_t i = 0; i < inner.size(); ++i) check_class(*inner[i], state.inner[i], folder);
}

void check_optimizers(const CheckpointParts& parts, const Opened& opened,
                      const CheckpointRestoreOptions& options) {
  const std::vector<OptimizerHandle> optimizers = optimizers_of(parts);
  const std::vector<OptimizerState>& states = opened.state.optimizers;
  const std::string& folder = opened.reader.name();
  if (optimizers.size() != states.size() && !options.expect_partial) {
    throw CheckpointMismatch(
        folder, str("there are as many optimizers as in the checkpoint, ", states.size()),
        str(optimizers.size()), "compile or pass them, or restore with weights_only");
  }
  for (size_t i = 0; i < std::min(optimizers.size(), states.size()); ++i) {
    check_class(*optimizers[i], states[i], folder);
  }
}

/// Returns the tensor to read into this sharding; nothing if the checkpoint lacks it and
/// expect_partial allows that.
std::optional<TargetTensor> match_tensor(const CheckpointSource& reader, const std::string& item,
                                         bool is_weight, const ShardingPtr& sharding,
                                         const CheckpointRestoreOptions& options) {
  const CheckpointTensor* stored = reader.find(item);
  if (!stored) {
    if (options.expect_partial) return std::nullopt;
    const std::string name = nearest(item, names_in(reader));
    throw CheckpointMismatch(reader.name(), "the checkpoint holds " + in_quotes(item),
                             name.empty() ? "no name like it" : "the nearest is " + in_quotes(name),
                             is_weight ? "restore a checkpoint of the same model"
                                       : "restore with weights_only or expect_partial");
  }
  const std::string dtype = safetensors_dtype(sharding->dtype, item);
  if (stored->shape != sharding->shape || stored->dtype != dtype) {
    throw CheckpointMismatch(reader.name(),
                             str("tensor ", in_quotes(item), " has shape ",
                                 to_string(sharding->shape), " and dtype ", dtype),
                             str(to_string(stored->shape), " and ", in_quotes(stored->dtype)),
                             stored->shape == sharding->shape
                                 ? dtype_fix(stored->dtype)
                                 : "restore a checkpoint of the same model");
  }
  return TargetTensor{item, sharding};
}

ShardingPtr sharding_of(const Variable& variable) {
  return intern(variable.shape(), variable.dtype(), variable.layout());
}

/// Returns the sharding in which a stored state is read: that of the layer's present state if it
/// has the same shape, else replicated, since only the next call knows the batch's layout.
ShardingPtr sharding_of(const CheckpointSource& reader, const std::string& name,
                        const LayerState& state, const Mesh& mesh) {
  Shape shape = state.shape;
  const CheckpointTensor* const stored = reader.find(name);
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] < 0 && stored && stored->shape.size() == shape.size()) shape[a] = stored->shape[a];
  }
  const Variable& now = state.variable;
  if (now.defined() && now.shape() == shape) return sharding_of(now);
  return intern(shape, state.dtype, Layout::replicated(mesh, int64_t(shape.size())));
}

/// Returns the states of a layer that the checkpoint has under `prefix`: all of them, or none.
std::vector<TargetTensor> match_states(const CheckpointSource& reader, const std::string& prefix,
                                       const std::string& path, const HasStates& layer,
                                       const Mesh& mesh) {
  std::vector<TargetTensor> targets;
  const std::vector<LayerState> states = layer.states();
  const auto is_stored = [&](const LayerState& state) {
    return reader.find(prefix + state_name(path, state)) != nullptr;
  };
  if (std::none_of(states.begin(), states.end(), is_stored)) return targets;
  for (const LayerState& state : states) {
    const std::string name = prefix + state_name(path, state);
    targets.push_back(
        *match_tensor(reader, name, false, sharding_of(reader, name, state, mesh), {}));
  }
  return targets;
}

/// Returns whether the item is a slot of an optimizer that was saved before its first step, without
/// slots.
bool has_no_slots(const Opened& opened, const CheckpointItem& item) {
  if (item.is_weight) return false;
  for (size_t i = 0; i < opened.state.optimizers.size(); ++i) {
    const std::string prefix = optimizer_prefix(i) + "/";
    if (!item.name.starts_with(prefix)) continue;
    const auto& tensors = opened.reader.tensors();
    return opened.state.optimizers[i].steps == 0 &&
           std::none_of(tensors.begin(), tensors.end(), [&](const CheckpointTensor& tensor) {
             return tensor.name.starts_with(prefix);
           });
  }
  return false;
}

DTensor draw_initial_value(const Variable& variable) {
  Variable fresh(variable.spec());
  fresh.place(variable.placement());
  return fresh.value();
}

/// Throws CheckpointMismatch if the checkpoint has tensors that the program lacks.
void check_all_used(const Opened& opened, const std::set<std::string>& known) {
  const CheckpointSource& reader = opened.reader;
  std::vector<std::string> others;
  for (const std::string& name : names_in(reader)) {
    const bool is_state =
        name.starts_with("callbacks/") || name == step_losses_name ||
        (name.starts_with(metric_name("")) && opened.state.partial_sums.count(name));
    if (!known.count(name) && !is_state) others.push_back(name);
  }
  if (others.empty()) return;
  throw CheckpointMismatch(reader.name(), "the model has every tensor of the checkpoint",
                           str("no ", quoted_list(others, 3)),
                           "restore with weights_only or expect_partial");
}

/// Returns the tensors of a callback, each with the sharding of the weight or state of its name.
std::vector<TargetTensor> callback_tensors(const CheckpointParts& parts,
                                           const CheckpointSource& reader, const std::string& key) {
  std::vector<TargetTensor> targets;
  const std::string prefix = "callbacks/" + key + "/";
  for (const Variable& weight : weights_of(parts)) {
    auto match = match_tensor(reader, prefix + weight.path(), false, sharding_of(weight),
                              {.expect_partial = true});
    if (match) targets.push_back(std::move(*match));
  }
  if (!parts.model) return targets;
  for (const auto& [path, layer] : layers_with_states(*parts.model)) {
    for (TargetTensor& state : match_states(reader, prefix, path, *layer, mesh_of(parts))) {
      targets.push_back(std::move(state));
    }
  }
  return targets;
}

at::Tensor read_block(const CheckpointSource& reader, const TargetTensor& target,
                      const std::vector<Interval>& intervals) {
  const at::Tensor block =
      at::empty(tile_shape(intervals), at::TensorOptions().dtype(target.sharding->dtype));
  if (block.numel() == 0) return block;
  const std::span<std::byte> bytes(static_cast<std::byte*>(block.data_ptr()), block.nbytes());
  const Shape begin = tile_begin(intervals);
  const Shape end = tile_end(intervals);
  constexpr size_t share_bytes = size_t{4} << 20;
  const size_t shares =
      std::clamp<size_t>(bytes.size() / share_bytes, 1, static_cast<size_t>(at::get_num_threads()));
  at::parallel_for(0, static_cast<int64_t>(shares), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      reader.read(target.name, begin, end, bytes, {static_cast<uint64_t>(i), shares});
    }
  });
  return block;
}

DTensor read_tensor(const CheckpointSource& reader, const TargetTensor& target) {
  return read_blocks(target.sharding, [&](const std::vector<Interval>& intervals) {
    return read_block(reader, target, intervals);
  });
}

/// The items that restoring will change, with their new values once read.
struct Plan {
  std::vector<std::pair<CheckpointItem, TargetTensor>> items;
  std::vector<std::pair<HasStates*, std::vector<TargetTensor>>> states;
  std::vector<std::pair<std::string, std::vector<TargetTensor>>> callbacks;
  std::vector<std::pair<Variable, TargetTensor>> partial_sums;  ///< UnreducedSum, by accumulator
  std::vector<std::pair<std::string, TargetTensor>> metrics;    ///< metric_sums(), by name
};

/// Returns the tensor with the partial sums of an item, if the checkpoint has it and it fits this
/// mesh.
std::optional<TargetTensor> match_partial_sums(const Opened& opened, const std::string& item,
                                               at::ScalarType dtype, const Mesh& mesh) {
  const std::string name = partial_sums_name(item);
  const CheckpointTensor* const stored = opened.reader.find(name);
  const auto found = opened.state.partial_sums.find(name);
  if (!stored || found == opened.state.partial_sums.end()) return std::nullopt;
  LayoutSpec spec;
  for (const std::vector<std::string>& dims : found->second) {
    for (const std::string& dim : dims) {
      if (mesh.find(dim) < 0) return std::nullopt;
    }
    spec.emplace_back(dims);
  }
  const Layout layout(spec, mesh);
  if (layout.rank() == 0 || layout.rank() != std::ssize(stored->shape)) return std::nullopt;
  const bool fits =
      layout.num_shards(0) == stored->shape[0] && stored->dtype == safetensors_dtype(dtype, name);
  if (!fits) return std::nullopt;
  return TargetTensor{name, intern(stored->shape, dtype, layout)};
}

/// Returns the same for an accumulator.
std::optional<TargetTensor> match_partial_sums(const Opened& opened, const CheckpointItem& item) {
  const Variable& variable = item.variable;
  auto match = match_partial_sums(opened, item.name, variable.dtype(), variable.layout().mesh());
  if (!match) return std::nullopt;
  const Shape& shape = match->sharding->shape;
  return Shape(shape.begin() + 1, shape.end()) == variable.shape() ? match : std::nullopt;
}

/// Plans the sums of metrics, which fit() matches with the metrics once it knows them.
void plan_metrics(const CheckpointParts& parts, const Opened& opened, Plan& plan) {
  if (!parts.model || !parts.model->compiled() || opened.state.metrics.is_null()) return;
  const Json& all = opened.state.metrics;
  if (!all.is_object() || !all.contains("metrics") || !all["metrics"].is_object()) return;
  for (const auto& [name, totals] : all["metrics"].items()) {
    auto match = match_partial_sums(opened, metric_name(name), at::kDouble, mesh_of(parts));
    if (match) plan.metrics.emplace_back(name, std::move(*match));
  }
}

/// Plans the states of layers. A layer without states in the checkpoint had not been called.
void plan_states(const CheckpointParts& parts, const CheckpointSource& reader,
                 const CheckpointRestoreOptions& options, Plan& plan) {
  if (!parts.model) return;
  for (const auto& [path, layer] : layers_with_states(*parts.model)) {
    std::vector<TargetTensor> targets = match_states(reader, "", path, *layer, mesh_of(parts));
    if (targets.empty() && options.expect_partial) continue;
    plan.states.emplace_back(layer, std::move(targets));
  }
}

Plan make_plan(const CheckpointParts& parts, const Opened& opened,
               const CheckpointRestoreOptions& options) {
  if (!options.weights_only) {
    check_optimizers(parts, opened, options);
    build_optimizers(parts, opened.reader);
  }
  Plan plan;
  const std::vector<CheckpointItem> items = items_of(parts);
  for (const CheckpointItem& item : items) {
    if (options.weights_only && !item.is_weight) continue;
    if (has_no_slots(opened, item)) {
      plan.items.emplace_back(item,
                              TargetTensor{.name = item.name, .sharding = {}, .is_initial = true});
      continue;
    }
    auto match =
        match_tensor(opened.reader, item.name, item.is_weight, sharding_of(item.variable), options);
    if (!match) continue;
    auto partial_sums = match_partial_sums(opened, item);
    match->is_initial = partial_sums.has_value();
    plan.items.emplace_back(item, std::move(*match));
    if (partial_sums) plan.partial_sums.emplace_back(item.variable, std::move(*partial_sums));
  }
  if (options.weights_only) return plan;
  plan_states(parts, opened.reader, options, plan);
  plan_metrics(parts, opened, plan);
  std::set<std::string> known;
  for (const CheckpointItem& item : items) {
    known.insert(item.name);
    known.insert(partial_sums_name(item.name));
  }
  for (const auto& [layer, targets] : plan.states) {
    for (const TargetTensor& target : targets) known.insert(target.name);
  }
  if (!options.expect_partial) check_all_used(opened, known);
  for (const auto& [key, callback] : named_callbacks(parts)) {
    if (!opened.state.callbacks.contains(key)) continue;
    plan.callbacks.emplace_back(key, callback_tensors(parts, opened.reader, key));
  }
  return plan;
}

void read_values(const CheckpointSource& reader, Plan& plan) {
  for (auto& [item, target] : plan.items) {
    target.value =
        target.is_initial ? draw_initial_value(item.variable) : read_tensor(reader, target);
    if (StoredSlots::rests(item.variable)) {
      target.value = StoredSlots::stored(item.variable, target.value);
    }
  }
  for (auto& [accumulator, target] : plan.partial_sums) target.value = read_tensor(reader, target);
  for (auto& [name, target] : plan.metrics) target.value = read_tensor(reader, target);
  for (auto& [layer, tensors] : plan.states) {
    for (TargetTensor& target : tensors) target.value = read_tensor(reader, target);
  }
  for (auto& [key, tensors] : plan.callbacks) {
    for (TargetTensor& target : tensors) target.value = read_tensor(reader, target);
  }
}

/// Returns all that this process will read.
std::vector<CheckpointRead> reads_of(const Plan& plan) {
  std::vector<CheckpointRead> reads;
  const auto add = [&](const TargetTensor& target) {
    if (target.is_initial) return;
    for (const BlockInfo& block : target.sharding->blocks) {
      reads.push_back({target.name, tile_begin(block.intervals), tile_end(block.intervals)});
    }
  };
  for (const auto& [item, target] : plan.items) add(target);
  for (const auto& [accumulator, target] : plan.partial_sums) add(target);
  for (const auto& [name, target] : plan.metrics) add(target);
  for (const auto& [layer, targets] : plan.states)
    std::for_each(targets.begin(), targets.end(), add);
  for (const auto& [key, targets] : plan.callbacks) {
    std::for_each(targets.begin(), targets.end(), add);
  }
  return reads;
}

void apply_callbacks(const CheckpointParts& parts, const CheckpointState& state, Plan& plan) {
  std::map<std::string, Callback*> known;
  for (const auto& [key, callback] : named_callbacks(parts)) known[key] = callback;
  for (const auto& [key, targets] : plan.callbacks) {
    NamedTensors tensors;
    const size_t prefix = std::string("callbacks/" + key + "/").size();
    for (const TargetTensor& one : targets) {
      tensors.emplace_back(one.name.substr(prefix), one.value);
    }
    known.at(key)->restore(state.callbacks.at(key), tensors);
  }
}

void apply_state(CheckpointParts& parts, const CheckpointState& state, Plan& plan) {
  const bool in_fit = parts.model && parts.model->compiled();
  if (in_fit && !state.metrics.is_null()) {
    std::map<std::string, DTensor> sums;
    for (auto& [name, target] : plan.metrics) sums[name] = std::exchange(target.value, {});
    parts.model->restore_metric_totals(state.metrics, std::move(sums));
  }
  if (in_fit) parts.model->set_fit_position(state.position);
  if (in_fit && state.history) parts.model->set_history(*state.history);
  const std::vector<OptimizerHandle> optimizers = optimizers_of(parts);
  for (size_t i = 0; i < std::min(optimizers.size(), state.optimizers.size()); ++i) {
    restore_state(*optimizers[i], state.optimizers[i]);
  }
  set_random_seed(state.seed);
  parts.extra = state.extra;
}

}  // namespace

Checkpoint::Restored restore_checkpoint(CheckpointParts& parts, const std::string& folder,
                                        const CheckpointRestoreOptions& options) {
  std::optional<FolderSource> source;
  collectively(mesh_of(parts), folder, [&] { source.emplace(folder); });
  return restore_checkpoint(parts, *source, options);
}

Checkpoint::Restored restore_checkpoint(CheckpointParts& parts, CheckpointSource& source,
                                        const CheckpointRestoreOptions& options) {
  const Mesh mesh = mesh_of(parts);
  std::optional<Opened> opened;
  collectively(mesh, source.name(), [&] { opened.emplace(source); });
  // Equal on every process, as all opened the same checkpoint.
  Plan plan = make_plan(parts, *opened, options);
  source.prepare(reads_of(plan));
  collectively(mesh, source.name(), [&] { read_values(source, plan); });
  Checkpoint::Restored restored{.bytes_read = opened->reader.bytes_read()};
  // Steps that may throw come before those that cannot.
  if (!options.weights_only) {
    apply_callbacks(parts, opened->state, plan);
    apply_state(parts, opened->state, plan);
  }
  for (auto& [item, target] : plan.items) {
    item.variable.assign(std::exchange(target.value, {}));
    ++restored.tensors;
  }
  if (!options.weights_only) {
    std::vector<UnreducedSum> sums;
    for (auto& [accumulator, target] : plan.partial_sums) {
      sums.push_back({accumulator, std::exchange(target.value, {})});
    }
    AccumulatedGradients::replace(optimizers_of(parts), sums);
  }
  for (auto& [layer, targets] : plan.states) {
    std::vector<DTensor> values;
    for (TargetTensor& target : targets) values.push_back(std::exchange(target.value, {}));
    layer->set_states(values);
    restored.tensors += std::ssize(values);
  }
  return restored;
}

}  // namespace tessera::detail
