#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera::detail {

/// The objects that a checkpoint saves and restores.
struct CheckpointParts {
  std::optional<ModelHandle> owner = std::nullopt;  ///< keeps `model` alive
  Model* model = nullptr;
  std::vector<Variable> variables = {};  ///< variables of a custom training loop
  std::vector<OptimizerHandle> optimizers = {};
  std::vector<Callback*> callbacks = {};
  /// Metric totals of an epoch, saved instead of the model's while its validation runs.
  Json totals = nullptr;
  std::map<std::string, DTensor> sums = {};  ///< and their metric_sums()
  Json extra = nullptr;
};

/// A tensor of a checkpoint and the variable it belongs to.
struct CheckpointItem {
  std::string name;
  Variable variable;
  bool is_weight = true;
};

/// Returns the model's weights, or the variables. Throws StateError for a model that is not built.
std::vector<Variable> weights_of(const CheckpointParts& parts);

/// Returns the compiled optimizer, or the given ones; null ones are left out.
std::vector<OptimizerHandle> optimizers_of(const CheckpointParts& parts);

/// Returns the weights by their paths, then the optimizers' slots:
/// "optimizer/hidden/kernel/momentum", and "optimizer_1/…" for a second optimizer. Throws
/// ConfigError for a duplicate name.
std::vector<CheckpointItem> items_of(const CheckpointParts& parts);

/// Returns the mesh of the first weight; the default mesh if there is none.
Mesh mesh_of(const CheckpointParts& parts);

/// Returns the name of the tensor with the partial sums of an accumulator (UnreducedSum) or of
/// metric_name(), which training goes on with, to the bit, where the mesh has the same dimensions.
inline std::string partial_sums_name(const std::string& item) { return item + ".partial_sums"; }

/// Returns the name of a metric among the tensors.
inline std::string metric_name(const std::string& name) { return "metrics/" + name; }

/// Returns "optimizer", "optimizer_1" and so on.
std::string optimizer_prefix(size_t number);

/// Returns the callbacks by class name and index among those of the class: "EarlyStopping/0".
std::vector<std::pair<std::string, Callback*>> named_callbacks(const CheckpointParts& parts);

}  // namespace tessera::detail
