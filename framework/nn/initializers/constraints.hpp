#pragma once

#include <tessera/framework/nn/initializers/constraint.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

/// max(w, 0) (keras.constraints.NonNeg). No communication.
class NonNeg : public ConstraintHandle {
 public:
  NonNeg();
};

struct MaxNormOptions {
  double max_value = 2;
  ops::Axes axis = {0};
};

/// w · min(‖w‖, max_value) / (‖w‖ + 1e-7), the norm over `axis` (keras.constraints.MaxNorm). The
/// norms of these constraints cost one all-reduce if a mesh dimension cuts their axes. They throw
/// ConfigError for a bound that is negative or not finite, ShapeError for an axis that the weight
/// lacks.
class MaxNorm : public ConstraintHandle {
 public:
  explicit MaxNorm(const MaxNormOptions& options = {});
};

struct UnitNormOptions {
  ops::Axes axis = {0};
};

/// w / (‖w‖ + 1e-7), the norm over `axis` (keras.constraints.UnitNorm).
class UnitNorm : public ConstraintHandle {
 public:
  explicit UnitNorm(const UnitNormOptions& options = {});
};

struct MinMaxNormOptions {
  double min_value = 0;
  double max_value = 1;
  double rate = 1;
  ops::Axes axis = {0};
};

/// w · (rate · clip(‖w‖, min_value, max_value) + (1 - rate) · ‖w‖) / (‖w‖ + 1e-7), the norm over
/// `axis` (keras.constraints.MinMaxNorm).
class MinMaxNorm : public ConstraintHandle {
 public:
  explicit MinMaxNorm(const MinMaxNormOptions& options = {});
};

}  // namespace tessera
