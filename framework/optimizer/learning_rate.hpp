#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>

namespace tessera {

/// A learning rate that follows the step (keras.optimizers.schedules.LearningRateSchedule).
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  /// Keras' class name, "ExponentialDecay".
  virtual std::string class_name() const = 0;
  /// The schedule's arguments and options by Keras' keys.
  virtual Json config() const = 0;
  /// The rate of the step that follows `step` others.
  virtual double operator()(int64_t step) const = 0;
};

/// A handle to a schedule.
class LearningRateScheduleHandle : public detail::Handle<const LearningRateSchedule> {
 public:
  using Handle::Handle;
  /// The rate of the step that follows `step` others.
  double operator()(int64_t step) const { return (**this)(step); }
};

/// What an optimizer takes as its rate: a number or a schedule.
class LearningRate {
 public:
  /// The rate 0.
  LearningRate() = default;
  /// One rate for all steps. Throws ConfigError for a negative one.
  LearningRate(double rate);                                // NOLINT: reads as data
  LearningRate(const LearningRateScheduleHandle& schedule)  // NOLINT
      : schedule_(schedule) {}
  bool is_schedule() const { return static_cast<bool>(schedule_); }
  /// The rate of the step that follows `step` others.
  double at(int64_t step) const { return schedule_ ? schedule_(step) : rate_; }
  /// A number, or the schedule as Keras serializes it.
  Json config() const;

 private:
  double rate_ = 0;
  LearningRateScheduleHandle schedule_;
};
namespace detail {

/// A rate from a number or a serialized schedule. Throws ConfigError naming the place.
void json_get(const Json& json, const JsonPath& path, LearningRate& out);

}  // namespace detail

/// The schedule that Keras serialized: {"class_name": "CosineDecay", "config": {…}}. Throws
/// ConfigError naming `where` and the nearest class or key.
LearningRateScheduleHandle schedule_from_config(const Json& json,
                                                const std::string& where = "learning_rate");
namespace detail {

/// Keras' class names of all schedules, sorted.
std::vector<std::string> schedule_names();

/// The table of schedules by class name, to which each class adds itself by a Registered.
ConfigFactories<LearningRateScheduleHandle>& schedule_factories();

}  // namespace detail

}  // namespace tessera
