#include <tessera/framework/training/callbacks/reduce_lr_on_plateau.hpp>

#include <algorithm>
#include <memory>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/callbacks/internal/learning_rate_access.hpp>
#include <tessera/framework/training/callbacks/internal/monitor.hpp>
#include <tessera/framework/training/callbacks/internal/python_repr.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera {

using namespace detail;

namespace {

class Reducer final : public Callback {
 public:
  explicit Reducer(const ReduceLROnPlateauOptions& options)
      : options_(options),
        monitor_("ReduceLROnPlateau", {options.monitor, options.mode, options.min_delta}) {
    if (options.factor < 1) return;
    throw ConfigError("ReduceLROnPlateau", "factor is less than 1", str(options.factor),
                      "pass what the rate is to be multiplied by");
  }

  void on_train_begin() override {
    best_ = std::nullopt;
    wait_ = cooldown_counter_ = 0;
  }

  void on_epoch_end(int64_t epoch, Logs& logs) override {
    set_value(logs, "learning_rate", rate_of(trainer()));
    const std::optional<double> value = find_value(logs, monitor_.name());
    if (!value) {
      warn(str("Learning rate reduction is conditioned on metric `", monitor_.name(),
               "` which is not available. Available metrics are: ", Monitor::names_in(logs), "."));
      return;
    }
    if (cooldown_counter_ > 0) {
      --cooldown_counter_;
      wait_ = 0;
    }
    if (monitor_.improved(*value, best_, trainer())) {
      best_ = value;
      wait_ = 0;
    } else if (cooldown_counter_ == 0 && ++wait_ >= options_.patience) {
      reduce(epoch);
    }
  }

  std::string class_name() const override { return "ReduceLROnPlateau"; }

  Json state() const override {
    return {{"best", best_ ? Json(*best_) : Json(nullptr)},
            {"wait", wait_},
            {"cooling", cooldown_counter_}};
  }

  void restore(const Json& state, const NamedTensors&) override {
    JsonObject saved(state, JsonPath("ReduceLROnPlateau"));
    best_ = saved.take_optional<double>("best");
    wait_ = saved.take<int64_t>("wait");
    cooldown_counter_ = saved.take<int64_t>("cooling");
  }

 private:
  void reduce(int64_t epoch) {
    const double old_rate = rate_of(trainer());
    if (old_rate <= static_cast<float>(options_.min_lr)) return;
    const double rate = std::max(old_rate * options_.factor, options_.min_lr);
    set_rate(trainer(), rate);
    if (options_.verbose > 0) {
      print(str("\nEpoch ", epoch + 1, ": ReduceLROnPlateau reducing learning rate to ",
                python_repr(rate), "."));
    }
    cooldown_counter_ = options_.cooldown;
    wait_ = 0;
  }

  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  std::optional<double> best_;
  int64_t wait_ = 0;
  int64_t cooldown_counter_ = 0;
};

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(const ReduceLROnPlateauOptions& options)
    : CallbackHandle(std::make_shared<Reducer>(options)) {}

}  // namespace tessera
