#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// Maps variables to optimizers by path (keras.optimizers.OptimizerMap).
///
///     MultiOptimizer(OptimizerMap(SGD(0.1), {{"embedding/.*", Adam(1e-3)}}))
class OptimizerMap {
 public:
  using Items = std::vector<std::pair<std::string, OptimizerHandle>>;
  /// A key is a variable's path or an RE2 expression that matches the full path;
  /// `default_optimizer` takes the other variables. Throws as set() does.
  explicit OptimizerMap(OptimizerHandle default_optimizer, const Items& optimizer_map = {});
  /// Creates the map from Keras' config. Throws ConfigError naming an invalid value.
  static OptimizerMap from_config(JsonObject& config);
  /// Returns the map's Keras config.
  Json config() const;

  /// Adds an optimizer. Throws ConfigError for a duplicate key, an invalid expression and an
  /// optimizer that has inner ones.
  void set(const std::string& key, const OptimizerHandle& optimizer);
  /// Returns the optimizer for this path. Throws ConfigError if several expressions match.
  const OptimizerHandle& at(const std::string& path) const;
  const OptimizerHandle& default_optimizer() const { return default_; }
  const Items& items() const { return items_; }

 private:
  OptimizerHandle default_;
  Items items_;
};

/// The options of MultiOptimizer.
struct MultiOptimizerOptions {
  /// Factor of the loss; replaces the inner optimizers' own. None: 1.
  std::optional<double> loss_scale_factor = std::nullopt;
  std::string name = "";  ///< name in errors; slots' paths begin with the inner optimizers' names
};

/// Several optimizers, each for some of the variables (keras.optimizers.MultiOptimizer). Gradients
/// are reduced together; each inner optimizer applies its own clipping, decay, accumulation and
/// moving averages. There is no common learning rate: learning_rate() and set_learning_rate() throw
/// StateError.
class MultiOptimizer : public OptimizerHandle {
 public:
  using Choose = std::function<OptimizerHandle(const Variable& variable)>;

  explicit MultiOptimizer(OptimizerMap optimizer_map, MultiOptimizerOptions options = {});
  /// Takes the optimizer that the function returns for each variable, when the optimizer is built;
  /// one that has inner optimizers is then an error. In config() the map is null.
  explicit MultiOptimizer(Choose optimizer_map, MultiOptimizerOptions options = {});

  /// Returns the inner optimizers: those of the map and its default last, or those of the function
  /// in the order in which it returned them.
  std::vector<OptimizerHandle> optimizers() const { return (**this).inner(); }
};

}  // namespace tessera
