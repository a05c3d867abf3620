#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// The counterpart of an UpdateStrategy: updates parts of variables where they are stored, with the
/// gradients that a strategy received elsewhere.
class PartUpdater {
 public:
  /// Uses the slots, rate and step count of `optimizer`.
  explicit PartUpdater(OptimizerHandle optimizer) : optimizer_(std::move(optimizer)) {}

  /// Creates the slots of `part`, a part of `variable`, whose weight decay it takes.
  /// Throws StateError if it has slots already, ConfigError if updating parts separately would not
  /// equal updating the variable.
  void build(const Variable& part, const Variable& variable);
  /// Runs one update with gradients from an UpdateStrategy: decay, update, averages, constraints.
  /// Counts as gradient_accumulation_steps calls of Optimizer::apply().
  void apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& parts);

 private:
  OptimizerHandle optimizer_;
};

}  // namespace tessera::detail
