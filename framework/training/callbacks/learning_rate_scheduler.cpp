#include <tessera/framework/training/callbacks/learning_rate_scheduler.hpp>

#include <memory>
#include <optional>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/callbacks/internal/learning_rate_access.hpp>
#include <tessera/framework/training/callbacks/internal/python_repr.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera {

using namespace detail;

namespace {

using Schedule = std::function<double(int64_t, double)>;

class Scheduler final : public Callback {
 public:
  Scheduler(Schedule schedule, const LearningRateSchedulerOptions& options)
      : schedule_(std::move(schedule)), options_(options) {
    if (schedule_) return;
    throw ConfigError("LearningRateScheduler", "schedule is a function", "none",
                      "pass a function of the epoch and the rate");
  }

  void on_epoch_begin(int64_t epoch) override {
    // A resumed epoch had its rate set when it began.
    if (std::exchange(set_for_, epoch) == epoch) return;
    const double rate = schedule_(epoch, rate_of(trainer()));
    set_rate(trainer(), rate);
    if (options_.verbose > 0) {
      print(str("\nEpoch ", epoch + 1, ": LearningRateScheduler setting learning rate to ",
                python_repr(rate), "."));
    }
  }

  void on_epoch_end(int64_t, Logs& logs) override {
    set_value(logs, "learning_rate", rate_of(trainer()));
  }

  void on_train_begin() override { set_for_ = std::nullopt; }
  std::string class_name() const override { return "LearningRateScheduler"; }
  Json state() const override { return {{"epoch", set_for_.value_or(-1)}}; }

  void restore(const Json& state, const NamedTensors&) override {
    set_for_ = JsonObject(state, JsonPath("LearningRateScheduler")).take<int64_t>("epoch");
  }

 private:
  Schedule schedule_;
  LearningRateSchedulerOptions options_;
  std::optional<int64_t> set_for_;
};

}  // namespace

LearningRateScheduler::LearningRateScheduler(Schedule schedule,
                                             const LearningRateSchedulerOptions& options)
    : CallbackHandle(std::make_shared<Scheduler>(std::move(schedule), options)) {}

}  // namespace tessera
