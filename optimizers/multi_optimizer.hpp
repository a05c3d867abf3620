#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// Which optimizer updates which variables (keras.optimizers.OptimizerMap).
///
///     MultiOptimizer(OptimizerMap(SGD(0.1), {{"embedding/.*", Adam(1e-3)}}))
class OptimizerMap {
 public:
  using Items = std::vector<std::pair<std::string, OptimizerHandle>>;
  /// The optimizer of a variable whose path a key is or, as an RE2 expression, matches as a whole;
  /// `default_optimizer` takes the others. Throws as set() does.
  explicit OptimizerMap(OptimizerHandle default_optimizer, const Items& optimizer_map = {});
  /// The map of a Keras' config. Throws ConfigError naming a wrong value.
  static OptimizerMap from_config(JsonObject& config);
  /// The map as Keras configures it.
  Json config() const;

  /// Adds an optimizer. Throws ConfigError for a key that is there already, an expression that RE2
  /// does not take and an optimizer that has inner ones.
  void set(const std::string& key, const OptimizerHandle& optimizer);
  /// The optimizer of this path. Throws ConfigError if several expressions match.
  const OptimizerHandle& at(const std::string& path) const;
  const OptimizerHandle& default_optimizer() const { return default_; }
  const Items& items() const { return items_; }

 private:
  OptimizerHandle default_;
  Items items_;
};

/// The options of MultiOptimizer.
struct MultiOptimizerOptions {
  /// What the loss is multiplied by, in place of the inner optimizers' own; none: 1.
  std::optional<double> loss_scale_factor = std::nullopt;
  std::string name = "";  ///< what errors call it; slots' paths begin with the inner optimizers'
};

/// Several optimizers, each for some variables (keras.optimizers.MultiOptimizer). Gradients are
/// reduced together; clipping, decay, accumulation and moving averages are those of each inner
/// optimizer. There is no learning rate of all: learning_rate() and set_learning_rate() throw
/// StateError.
class MultiOptimizer : public OptimizerHandle {
 public:
  using Choose = std::function<OptimizerHandle(const Variable& variable)>;

  explicit MultiOptimizer(OptimizerMap optimizer_map, MultiOptimizerOptions options = {});
  /// Chooses by what the function gives for each variable when the optimizer is built; it is then
  /// an error if that has inner ones. In config() the map is null.
  explicit MultiOptimizer(Choose optimizer_map, MultiOptimizerOptions options = {});

  /// The inner optimizers in the order of the map, its default at the end; then as the function
  /// gave them.
  std::vector<OptimizerHandle> optimizers() const { return (**this).inner(); }
};

}  // namespace tessera
