#pragma once

#include <tessera/framework/nn/initializers/constraint.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

/// max(w, 0) (keras.constraints.NonNeg). No communication.
class NonNeg : public ConstraintHandle {
 public:
  NonNeg();
};

/// The options of MaxNorm.
struct MaxNormOptions {
  double max_value = 2;  ///< maximum norm
  ops::Axes axis = {0};  ///< axes of the norm; {0, 1, 2} for a Conv2D kernel
};

/// w · min(‖w‖, max_value) / (‖w‖ + 1e-7), the norm over `axis` (keras.constraints.MaxNorm;
/// Srivastava et al., 2014). Communication: one all-reduce if `axis` is sharded. Throws ConfigError
/// for a bound that is negative or not finite; applying it throws ShapeError if an axis is out of
/// range.
///
///     Dense(10, {.kernel_constraint = MaxNorm({.max_value = 1})})
class MaxNorm : public ConstraintHandle {
 public:
  explicit MaxNorm(const MaxNormOptions& options = {});
};

/// The options of UnitNorm.
struct UnitNormOptions {
  ops::Axes axis = {0};  ///< axes of the norm; {0, 1, 2} for a Conv2D kernel
};

/// w / (‖w‖ + 1e-7), the norm over `axis` (keras.constraints.UnitNorm). Communication: one
/// all-reduce if `axis` is sharded. Applying it throws ShapeError if an axis is out of range.
class UnitNorm : public ConstraintHandle {
 public:
  explicit UnitNorm(const UnitNormOptions& options = {});
};

/// The options of MinMaxNorm.
struct MinMaxNormOptions {
  double min_value = 0;  ///< minimum norm
  double max_value = 1;  ///< maximum norm
  double rate = 1;       ///< strength of the constraint: 1 enforces it, 0 has no effect
  ops::Axes axis = {0};  ///< axes of the norm; {0, 1, 2} for a Conv2D kernel
};

/// w · (rate · clip(‖w‖, min_value, max_value) + (1 - rate) · ‖w‖) / (‖w‖ + 1e-7), the norm over
/// `axis` (keras.constraints.MinMaxNorm). Communication: one all-reduce if `axis` is sharded.
/// Throws ConfigError for a number that is negative or not finite; applying it throws ShapeError if
/// an axis is out of range.
class MinMaxNorm : public ConstraintHandle {
 public:
  explicit MinMaxNorm(const MinMaxNormOptions& options = {});
};

}  // namespace tessera
