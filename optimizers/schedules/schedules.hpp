#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/optimizer/learning_rate.hpp>

namespace tessera {

/// The options of ExponentialDecay.
struct ExponentialDecayOptions {
  bool staircase = false;                 ///< whether to round step / decay_steps down
  std::string name = "ExponentialDecay";  ///< name in config(), as in Keras
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
  std::string name = "PiecewiseConstant";  ///< name in config(), as in Keras
};

/// values[i] up to and including step boundaries[i], then the last value
/// (keras.optimizers.schedules.PiecewiseConstantDecay). Throws ConfigError unless there is one more
/// value than boundaries and the boundaries increase.
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
  double power = 1;                   ///< exponent of the remaining fraction; 1: linear decay
  bool cycle = false;  ///< whether to restart at each multiple of decay_steps, decaying to the next
  std::string name = "PolynomialDecay";  ///< name in config(), as in Keras
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
  bool staircase = false;                 ///< whether to round step / decay_steps down
  std::string name = "InverseTimeDecay";  ///< name in config(), as in Keras
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
  double alpha = 0;                  ///< final rate, as a fraction of the first
  std::string name = "CosineDecay";  ///< name in config(), as in Keras
  /// Rate at which the linear warm-up ends and the decay begins; none: no warm-up.
  std::optional<double> warmup_target = std::nullopt;
  double warmup_steps = 0;  ///< steps from the initial rate to warmup_target
};

/// Half a cosine over decay_steps, from the initial rate, or from warmup_target after warmup_steps,
/// to alpha times that (keras.optimizers.schedules.CosineDecay; Loshchilov and Hutter, 2016),
/// computed in float32. Throws ConfigError unless decay_steps > 0.
///
///     Adam(CosineDecay(0, 10000, {.warmup_target = 1e-3, .warmup_steps = 500}))
class CosineDecay : public LearningRateScheduleHandle {
 public:
  CosineDecay(double initial_learning_rate, double decay_steps, CosineDecayOptions options = {});
};

/// The options of CosineDecayRestarts.
struct CosineDecayRestartsOptions {
  double t_mul = 2;                ///< ratio of each period's length to the previous one's
  double m_mul = 1;                ///< ratio of each period's first rate to the previous one's
  double alpha = 0;                ///< minimum rate, as a fraction of the first
  std::string name = "SGDRDecay";  ///< name in config(), as in Keras
};

/// Half-cosine periods with restarts (keras.optimizers.schedules.CosineDecayRestarts; Loshchilov
/// and Hutter, 2016), computed in float32. Throws ConfigError unless first_decay_steps > 0.
class CosineDecayRestarts : public LearningRateScheduleHandle {
 public:
  CosineDecayRestarts(double initial_learning_rate, double first_decay_steps,
                      CosineDecayRestartsOptions options = {});
};

}  // namespace tessera
