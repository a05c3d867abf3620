#include <tessera/framework/io/internal/checkpoint_parts.hpp>

#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>

namespace tessera::detail {

std::vector<Variable> weights_of(const CheckpointParts& parts) {
  if (!parts.model) return parts.variables;
  if (parts.model->built()) return parts.model->weights();
  throw StateError("Checkpoint", "the model is built", "a model whose weights are not known yet",
                   "call build() with an input shape first");
}

std::vector<OptimizerHandle> optimizers_of(const CheckpointParts& parts) {
  std::vector<OptimizerHandle> optimizers = parts.optimizers;
  if (parts.model && parts.model->compiled()) optimizers.push_back(parts.model->optimizer());
  std::erase_if(optimizers, [](const OptimizerHandle& optimizer) { return !optimizer; });
  return optimizers;
}

std::string optimizer_prefix(size_t number) {
  return number == 0 ? "optimizer" : str("optimizer_", number);
}

namespace {

/// Adds the slots of an optimizer, or of its inner optimizers.
void add_slots(std::vector<CheckpointItem>& items, const std::string& prefix,
               const Optimizer& optimizer) {
  const std::vector<OptimizerHandle> inner = optimizer.inner();
  for (const OptimizerHandle& each : inner) add_slots(items, prefix, *each);
  if (!inner.empty()) return;
  // Slot paths begin with the optimizer's name, which is not stable across runs.
  const size_t own = optimizer.name().size();
  for (const Variable& slot : optimizer.variables()) {
    items.push_back({prefix + slot.path().substr(own), slot, false});
  }
}

}  // namespace

std::vector<CheckpointItem> items_of(const CheckpointParts& parts) {
  std::vector<CheckpointItem> items;
  for (const Variable& weight : weights_of(parts)) items.push_back({weight.path(), weight, true});
  const std::vector<OptimizerHandle> optimizers = optimizers_of(parts);
  for (size_t i = 0; i < optimizers.size(); ++i) {
    add_slots(items, optimizer_prefix(i), *optimizers[i]);
  }
  std::set<std::string> names;
  for (const CheckpointItem& item : items) {
    if (names.insert(item.name).second) continue;
    throw ConfigError("Checkpoint", "every variable has a unique path",
                      in_quotes(item.name) + " twice", "name the layers or variables differently");
  }
  return items;
}

Mesh mesh_of(const CheckpointParts& parts) { return mesh_of(weights_of(parts)); }

std::vector<std::pair<std::string, Callback*>> named_callbacks(const CheckpointParts& parts) {
  std::vector<std::pair<std::string, Callback*>> named;
  std::map<std::string, int64_t> counts;
  for (Callback* callback : parts.callbacks) {
    const std::string name = callback->class_name();
    named.emplace_back(str(name, "/", counts[name]++), callback);
  }
  return named;
}

}  // namespace tessera::detail
