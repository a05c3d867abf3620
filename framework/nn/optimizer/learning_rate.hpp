#pragma once

#include <memory>
#include <string>

#include <tessera/framework/base/json.hpp>

namespace tessera {

/// A learning rate that follows the step (keras.optimizers.schedules.LearningRateSchedule).
class LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  /// Keras' class name, "ExponentialDecay".
  virtual std::string class_name() const = 0;
  virtual Json config() const = 0;
  /// The rate of the step that follows `step` others.
  virtual double operator()(int64_t step) const = 0;
};

/// A handle to a schedule.
class LearningRateScheduleRef {
 public:
  LearningRateScheduleRef() = default;
  LearningRateScheduleRef(std::shared_ptr<const LearningRateSchedule> made)
      : made_(std::move(made)) {}  // NOLINT: reads as data
  double operator()(int64_t step) const { return (*made_)(step); }
  const LearningRateSchedule& operator*() const { return *made_; }
  const LearningRateSchedule* operator->() const { return made_.get(); }
  explicit operator bool() const { return made_ != nullptr; }

 private:
  std::shared_ptr<const LearningRateSchedule> made_;
};

/// What an optimizer takes as its rate: a number or a schedule.
class LearningRate {
 public:
  /// Throws ConfigError for a negative rate.
  LearningRate(double rate);                             // NOLINT: reads as data
  LearningRate(const LearningRateScheduleRef& schedule)  // NOLINT
      : schedule_(schedule) {}
  bool is_schedule() const { return static_cast<bool>(schedule_); }
  /// The rate of the step that follows `step` others.
  double at(int64_t step) const { return schedule_ ? schedule_(step) : rate_; }
  /// A number, or the schedule as Keras serializes it.
  Json config() const;

 private:
  double rate_ = 0;
  LearningRateScheduleRef schedule_;
};

}  // namespace tessera
