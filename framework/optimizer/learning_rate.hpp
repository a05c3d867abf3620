#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>

namespace tessera {

/// A learning rate as a function of the step, that is of Optimizer::iterations()
/// (keras.optimizers.schedules.LearningRateSchedule).
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  /// Keras' class name, "ExponentialDecay".
  virtual std::string class_name() const = 0;
  /// Returns the schedule's arguments and options by Keras' keys.
  virtual Json config() const = 0;
  /// Returns the rate of step `step`, counted from 0.
  virtual double operator()(int64_t step) const = 0;
};

/// A handle to a schedule.
class LearningRateScheduleHandle : public Handle<const LearningRateSchedule> {
 public:
  using Handle::Handle;
  /// Returns the rate of step `step`, counted from 0.
  double operator()(int64_t step) const { return (**this)(step); }
};

/// An optimizer's learning rate: a number or a schedule.
class LearningRate {
 public:
  /// The rate 0.
  LearningRate() = default;
  /// A constant rate. Throws ConfigError for a negative one.
  LearningRate(double rate);                                // NOLINT: reads as data
  LearningRate(const LearningRateScheduleHandle& schedule)  // NOLINT
      : schedule_(schedule) {}
  bool is_schedule() const { return static_cast<bool>(schedule_); }
  /// Returns the rate of step `step`, counted from 0.
  double at(int64_t step) const { return schedule_ ? schedule_(step) : rate_; }
  /// Returns the number, or the schedule as Keras serializes it.
  Json config() const;

 private:
  double rate_ = 0;
  LearningRateScheduleHandle schedule_;
};
namespace detail {

/// Reads a rate from a number or a serialized schedule. Throws ConfigError naming the JSON path.
void json_get(const Json& json, const JsonPath& path, LearningRate& out);

}  // namespace detail

/// Creates a schedule that Keras serialized: {"class_name": "CosineDecay", "config": {…}}. Throws
/// ConfigError naming `where` and the nearest class or key.
LearningRateScheduleHandle schedule_from_config(const Json& json,
                                                const std::string& where = "learning_rate");
namespace detail {

/// Returns Keras' class names of all schedules, sorted.
std::vector<std::string> schedule_names();

/// The table of schedules by class name, to which each class adds itself with a Registered.
ConfigFactories<LearningRateScheduleHandle>& schedule_factories();

}  // namespace detail

}  // namespace tessera
