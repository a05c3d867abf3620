#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera::detail {

/// What a checkpoint is of.
struct CheckpointParts {
  std::optional<ModelHandle> owner = std::nullopt;  ///< keeps `model` alive
  Model* model = nullptr;
  std::vector<Variable> variables = {};  ///< what a training loop of the user's own saves
  std::vector<OptimizerHandle> optimizers = {};
  std::vector<Callback*> callbacks = {};
  /// Metric totals of an epoch that has stopped early, where the model's are of its validation.
  Json totals = nullptr;
  Json extra = nullptr;
};

/// A tensor of a checkpoint and the variable it belongs to.
struct CheckpointItem {
  std::string name;
  Variable variable;
  bool is_weight = true;
};

/// The model's weights, or the variables. Throws StateError for a model that is not built.
std::vector<Variable> weights_of(const CheckpointParts& parts);

/// The compiled optimizer, or those given; none that is null.
std::vector<OptimizerHandle> optimizers_of(const CheckpointParts& parts);

/// Weights by their paths, then what optimizers keep of them: "optimizer/hidden/kernel/momentum",
/// of a second one "optimizer_1/…". Throws ConfigError for a name twice.
std::vector<CheckpointItem> items_of(const CheckpointParts& parts);

/// Where the first weight lies; the default mesh if there is none.
Mesh mesh_of(const CheckpointParts& parts);

/// "optimizer", "optimizer_1".
std::string optimizer_prefix(size_t number);

/// The callbacks by class name and number among those of the class: "EarlyStopping/0".
std::vector<std::pair<std::string, Callback*>> named_callbacks(const CheckpointParts& parts);

}  // namespace tessera::detail
