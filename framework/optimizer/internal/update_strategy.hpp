#pragma once

#include <vector>

#include <tessera/framework/nn/variable.hpp>

namespace tessera::detail {

/// Applies the gradients of a step in place of an optimizer (Optimizer::set_update_strategy): the
/// interface for parameter servers. An implementation sends the gradients to where weights and
/// slots are stored, instead of updating them in this process.
class UpdateStrategy {
 public:
  virtual ~UpdateStrategy() = default;
  /// Applies the update of a step, given the variables that have a gradient and their gradients:
  /// divided by the loss scale, averaged over accumulated steps and clipped, each in its variable's
  /// layout.
  virtual void update(const std::vector<Variable>& variables,
                      const std::vector<DTensor>& gradients) = 0;
};

}  // namespace tessera::detail
