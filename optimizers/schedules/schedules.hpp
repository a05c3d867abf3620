#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/optimizer/learning_rate.hpp>

namespace tessera {

/// The options of ExponentialDecay.
struct ExponentialDecayOptions {
  bool staircase = false;                 ///< step / decay_steps is rounded down
  std::string name = "ExponentialDecay";  ///< kept for Keras
};

/// initial · decay_rate^(step / decay_steps) (keras.optimizers.schedules.ExponentialDecay),
/// computed in float32. Throws ConfigError unless decay_steps > 0.
class ExponentialDecay : public LearningRateScheduleHandle {
 public:
  ExponentialDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   ExponentialDecayOptions options = {});
};

/// The options of PiecewiseConstantDecay.
struct PiecewiseConstantDecayOptions {
  std::string name = "PiecewiseConstant";  ///< kept for Keras
};

/// values[i] up to and including step boundaries[i], the last value beyond
/// (keras.optimizers.schedules.PiecewiseConstantDecay). Throws ConfigError unless there is one
/// value more than boundaries and the boundaries rise.
///
///     PiecewiseConstantDecay({1000, 2000}, {0.1, 0.01, 0.001})
class PiecewiseConstantDecay : public LearningRateScheduleHandle {
 public:
  PiecewiseConstantDecay(std::vector<int64_t> boundaries, std::vector<double> values,
                         PiecewiseConstantDecayOptions options = {});
};

/// The options of PolynomialDecay.
struct PolynomialDecayOptions {
  double end_learning_rate = 0.0001;  ///< rate from decay_steps on
  double power = 1;                   ///< exponent of what is left of the decay; 1: a line
  bool cycle = false;  ///< starts anew at multiples of decay_steps, over ever longer spans
  std::string name = "PolynomialDecay";  ///< kept for Keras
};

/// (initial - end) · (1 - step / decay_steps)^power + end, then end
/// (keras.optimizers.schedules.PolynomialDecay), computed in float32. Throws ConfigError unless
/// decay_steps > 0.
class PolynomialDecay : public LearningRateScheduleHandle {
 public:
  PolynomialDecay(double initial_learning_rate, double decay_steps,
                  PolynomialDecayOptions options = {});
};

/// The options of InverseTimeDecay.
struct InverseTimeDecayOptions {
  bool staircase = false;                 ///< step / decay_steps is rounded down
  std::string name = "InverseTimeDecay";  ///< kept for Keras
};

/// initial / (1 + decay_rate · step / decay_steps) (keras.optimizers.schedules.InverseTimeDecay),
/// computed in float32. Throws ConfigError unless decay_steps > 0.
class InverseTimeDecay : public LearningRateScheduleHandle {
 public:
  InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   InverseTimeDecayOptions options = {});
};

/// The options of CosineDecay.
struct CosineDecayOptions {
  double alpha = 0;                  ///< last rate, as a fraction of the first
  std::string name = "CosineDecay";  ///< kept for Keras
  /// Where the linear warm-up ends and the decay begins; none: there is no warm-up.
  std::optional<double> warmup_target = std::nullopt;
  double warmup_steps = 0;  ///< steps from the initial rate to warmup_target
};

/// Half a cosine from initial, or from warmup_target after warmup_steps, to alpha times that within
/// decay_steps (keras.optimizers.schedules.CosineDecay; Loshchilov and Hutter, 2016), computed in
/// float32. Throws ConfigError unless decay_steps > 0.
///
///     Adam(CosineDecay(0, 10000, {.warmup_target = 1e-3, .warmup_steps = 500}))
class CosineDecay : public LearningRateScheduleHandle {
 public:
  CosineDecay(double initial_learning_rate, double decay_steps, CosineDecayOptions options = {});
};

/// The options of CosineDecayRestarts.
struct CosineDecayRestartsOptions {
  double t_mul = 2;                ///< each period's length by the former's
  double m_mul = 1;                ///< each period's first rate by the former's
  double alpha = 0;                ///< least rate, as a fraction of the first
  std::string name = "SGDRDecay";  ///< kept for Keras
};

/// Half cosines one after the other (keras.optimizers.schedules.CosineDecayRestarts; Loshchilov and
/// Hutter, 2016), computed in float32. Throws ConfigError unless first_decay_steps > 0.
class CosineDecayRestarts : public LearningRateScheduleHandle {
 public:
  CosineDecayRestarts(double initial_learning_rate, double first_decay_steps,
                      CosineDecayRestartsOptions options = {});
};

}  // namespace tessera
