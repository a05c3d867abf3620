#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// The other side of an UpdateStrategy: updates parts of variables, where these rest, by the
/// gradients that a strategy was given elsewhere.
class PartUpdater {
 public:
  /// Slots, rate and steps are those of `optimizer`.
  explicit PartUpdater(OptimizerHandle optimizer) : optimizer_(std::move(optimizer)) {}

  /// Makes the slots of a variable that is a part of `whole`, which decays if that does. Throws
  /// StateError if it has some, ConfigError if the updates of parts are not those of the whole.
  void build(const Variable& part, const Variable& whole);
  /// One update by gradients that an UpdateStrategy was given: decay, update, averages,
  /// constraints. Counts as gradient_accumulation_steps calls of Optimizer::apply().
  void apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& parts);

 private:
  OptimizerHandle optimizer_;
};

}  // namespace tessera::detail
