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
  double max_value = 2;  ///< largest norm that a vector keeps
  ops::Axes axis = {0};  ///< axes along which the vectors lie; {0, 1, 2} for a kernel of Conv2D
};

/// w · min(‖w‖, max_value) / (‖w‖ + 1e-7), the norm over `axis` (keras.constraints.MaxNorm;
/// Srivastava et al., 2014). The norm costs one all-reduce if a mesh dimension cuts its axes.
/// Throws ConfigError for a bound that is negative or not finite; applying it throws ShapeError for
/// an axis that the weight lacks.
///
///     Dense(10, {.kernel_constraint = MaxNorm({.max_value = 1})})
class MaxNorm : public ConstraintHandle {
 public:
  explicit MaxNorm(const MaxNormOptions& options = {});
};

/// The options of UnitNorm.
struct UnitNormOptions {
  ops::Axes axis = {0};  ///< axes along which the vectors lie; {0, 1, 2} for a kernel of Conv2D
};

/// w / (‖w‖ + 1e-7), the norm over `axis` (keras.constraints.UnitNorm). The norm costs one
/// all-reduce if a mesh dimension cuts its axes. Applying it throws ShapeError for an axis that the
/// weight lacks.
class UnitNorm : public ConstraintHandle {
 public:
  explicit UnitNorm(const UnitNormOptions& options = {});
};

/// The options of MinMaxNorm.
struct MinMaxNormOptions {
  double min_value = 0;  ///< least norm that a vector is brought to
  double max_value = 1;  ///< largest norm that a vector is brought to
  double rate = 1;       ///< how far each update goes: 1 all the way, 0 not at all
  ops::Axes axis = {0};  ///< axes along which the vectors lie; {0, 1, 2} for a kernel of Conv2D
};

/// w · (rate · clip(‖w‖, min_value, max_value) + (1 - rate) · ‖w‖) / (‖w‖ + 1e-7), the norm over
/// `axis` (keras.constraints.MinMaxNorm). The norm costs one all-reduce if a mesh dimension cuts
/// its axes. Throws ConfigError for a number that is negative or not finite; applying it throws
/// ShapeError for an axis that the weight lacks.
class MinMaxNorm : public ConstraintHandle {
 public:
  explicit MinMaxNorm(const MinMaxNormOptions& options = {});
};

}  // namespace tessera
