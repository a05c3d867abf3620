#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/optimizer/learning_rate.hpp>

namespace tessera {

struct ExponentialDecayOptions {
  bool staircase = false;  ///< step / decay_steps is rounded down
  std::string name = "ExponentialDecay";
};

/// initial · decay_rate^(step / decay_steps) (keras.optimizers.schedules.ExponentialDecay). As in
/// all schedules, computed in float32; throws ConfigError unless decay_steps > 0.
class ExponentialDecay : public LearningRateScheduleRef {
 public:
  ExponentialDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   ExponentialDecayOptions options = {});
};

struct PiecewiseConstantDecayOptions {
  std::string name = "PiecewiseConstant";
};

/// values[i] up to and including step boundaries[i], the last value beyond
/// (keras.optimizers.schedules.PiecewiseConstantDecay). Throws ConfigError unless there is one
/// value more than boundaries and the boundaries rise.
class PiecewiseConstantDecay : public LearningRateScheduleRef {
 public:
  PiecewiseConstantDecay(std::vector<int64_t> boundaries, std::vector<double> values,
                         PiecewiseConstantDecayOptions options = {});
};

struct PolynomialDecayOptions {
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;  ///< starts anew at multiples of decay_steps, over ever longer spans
  std::string name = "PolynomialDecay";
};

/// (initial - end) · (1 - step / decay_steps)^power + end, then end
/// (keras.optimizers.schedules.PolynomialDecay).
class PolynomialDecay : public LearningRateScheduleRef {
 public:
  PolynomialDecay(double initial_learning_rate, double decay_steps,
                  PolynomialDecayOptions options = {});
};

struct InverseTimeDecayOptions {
  bool staircase = false;  ///< step / decay_steps is rounded down
  std::string name = "InverseTimeDecay";
};

/// initial / (1 + decay_rate · step / decay_steps) (keras.optimizers.schedules.InverseTimeDecay).
class InverseTimeDecay : public LearningRateScheduleRef {
 public:
  InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate,
                   InverseTimeDecayOptions options = {});
};

struct CosineDecayOptions {
  double alpha = 0;  ///< last rate, as a fraction of the first
  std::string name = "CosineDecay";
  /// Where the linear warm-up ends and the decay begins; without it there is no warm-up.
  std::optional<double> warmup_target = std::nullopt;
  double warmup_steps = 0;
};

/// Half a cosine from initial, or from warmup_target after warmup_steps, to alpha times that within
/// decay_steps (keras.optimizers.schedules.CosineDecay).
class CosineDecay : public LearningRateScheduleRef {
 public:
  CosineDecay(double initial_learning_rate, double decay_steps, CosineDecayOptions options = {});
};

struct CosineDecayRestartsOptions {
  double t_mul = 2;  ///< each period's length by the former's
  double m_mul = 1;  ///< each period's first rate by the former's
  double alpha = 0;
  std::string name = "SGDRDecay";
};

/// Half cosines one after the other (Loshchilov and Hutter, 2016;
/// keras.optimizers.schedules.CosineDecayRestarts).
class CosineDecayRestarts : public LearningRateScheduleRef {
 public:
  CosineDecayRestarts(double initial_learning_rate, double first_decay_steps,
                      CosineDecayRestartsOptions options = {});
};

/// The schedule that Keras serialized: {"class_name": "CosineDecay", "config": {…}}. Throws
/// ConfigError naming `where` and the nearest class or key.
LearningRateScheduleRef schedule_from_config(const Json& json,
                                             const std::string& where = "learning_rate");

/// Keras' class names of all schedules, sorted.
std::vector<std::string> schedule_names();

}  // namespace tessera
