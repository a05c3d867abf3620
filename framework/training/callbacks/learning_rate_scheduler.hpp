#pragma once

#include <functional>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of LearningRateScheduler.
struct LearningRateSchedulerOptions {
  int verbose = 0;  ///< 0 silent, 1 a line with the rate of each epoch
};

/// Sets the learning rate at the beginning of every epoch, and logs it as "learning_rate"
/// (keras.callbacks.LearningRateScheduler).
class LearningRateScheduler : public CallbackHandle {
 public:
  /// `schedule(epoch, rate)` returns the new rate; epochs count from 0. Throws ConfigError for an
  /// empty function.
  explicit LearningRateScheduler(std::function<double(int64_t epoch, double rate)> schedule,
                                 const LearningRateSchedulerOptions& options = {});
};

}  // namespace tessera
