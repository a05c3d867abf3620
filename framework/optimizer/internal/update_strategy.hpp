#pragma once

#include <vector>

#include <tessera/framework/nn/variable.hpp>

namespace tessera::detail {

/// What becomes of the gradients of a step: the seam at which parameter servers enter an
/// optimizer. Without one (Optimizer::set_update_strategy) the optimizer updates weights and slots
/// itself, here; one of them sends gradients to where weights and slots rest instead.
class UpdateStrategy {
 public:
  virtual ~UpdateStrategy() = default;
  /// Makes the update of a step. Gets the variables that have a gradient and these: divided by the
  /// loss scale, averaged over accumulated steps and clipped, each in its variable's layout.
  virtual void update(const std::vector<Variable>& variables,
                      const std::vector<DTensor>& gradients) = 0;
};

}  // namespace tessera::detail
