#include <tessera/framework/training/callbacks/early_stopping.hpp>

#include <algorithm>
#include <memory>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/layer_states.hpp>
#include <tessera/framework/training/callbacks/internal/monitor.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera {

using namespace detail;

namespace {

class Stopper final : public Callback {
 public:
  explicit Stopper(const EarlyStoppingOptions& options)
      : options_(options),
        monitor_("EarlyStopping", {options.monitor, options.mode, options.min_delta}) {}

  void on_train_begin() override {
    wait_ = stopped_epoch_ = best_epoch_ = 0;
    best_ = std::nullopt;
    best_weights_.clear();
  }

  void on_epoch_end(int64_t epoch, Logs& logs) override {
    const std::optional<double> value = find_value(logs, monitor_.name());
    if (!value) {
      warn(str("Early stopping conditioned on metric `", monitor_.name(),
               "` which is not available. Available metrics are: ", Monitor::names_in(logs)));
      return;
    }
    if (epoch < options_.start_from_epoch) return;
    if (options_.restore_best_weights && best_weights_.empty()) keep_weights(epoch);
    ++wait_;
    if (monitor_.improved(*value, best_, trainer())) {
      best_ = value;
      best_epoch_ = epoch;
      if (options_.restore_best_weights) keep_weights(epoch);
      if (monitor_.improved(*value, options_.baseline, trainer())) wait_ = 0;
      return;
    }
    if (wait_ < options_.patience || epoch == 0) return;
    stopped_epoch_ = epoch;
    trainer().set_stop_training(true);
  }

  void on_train_end(const Logs&) override {
    const bool says = options_.verbose > 0;
    if (says && stopped_epoch_ > 0) print(str("Epoch ", stopped_epoch_ + 1, ": early stopping"));
    if (best_weights_.empty()) return;
    if (says) {
      print(str("Restoring model weights from the end of the best epoch: ", best_epoch_ + 1, "."));
    }
    const NamedVariables now = weights_and_states(trainer().layer());
    for (size_t i = 0; i < now.size(); ++i) {
      auto [name, variable] = now[i];
      const bool same = i < best_weights_.size() && best_weights_[i].first == name;
      const DTensor* const best = same ? &best_weights_[i].second : best_value(name);
      // A state may have become one of another batch size.
      if (best && best->shape() == variable.shape()) variable.assign(*best);
    }
    best_weights_.clear();
  }

  int64_t stopped_epoch() const { return stopped_epoch_; }
  int64_t best_epoch() const { return best_epoch_; }

  std::string class_name() const override { return "EarlyStopping"; }

  Json state() const override {
    return {{"wait", wait_},
            {"stopped_epoch", stopped_epoch_},
            {"best_epoch", best_epoch_},
            {"best", best_ ? Json(*best_) : Json(nullptr)}};
  }

  NamedTensors tensors() const override { return best_weights_; }

  void restore(const Json& state, const NamedTensors& tensors) override {
    JsonObject saved(state, JsonPath("EarlyStopping"));
    wait_ = saved.take<int64_t>("wait");
    stopped_epoch_ = saved.take<int64_t>("stopped_epoch");
    best_epoch_ = saved.take<int64_t>("best_epoch");
    best_ = saved.take_optional<double>("best");
    // A run that was interrupted after it had stopped ends; with more patience it continues.
    if (wait_ < options_.patience) stopped_epoch_ = 0;
    if (stopped_epoch_ > 0) trainer().set_stop_training(true);
    best_weights_.clear();
    if (!options_.restore_best_weights) return;
    best_weights_ = tensors;
    // If weights are missing, the next epoch's weights are the first candidates.
    for (const Variable& weight : trainer().layer().weights()) {
      if (!best_value(weight.path())) return best_weights_.clear();
    }
  }

 private:
  void keep_weights(int64_t epoch) {
    best_epoch_ = epoch;
    best_weights_.clear();
    for (const auto& [name, variable] : weights_and_states(trainer().layer())) {
      best_weights_.emplace_back(name, variable.value());
    }
  }
  /// Returns the kept value of a weight or state; null if there is none.
  const DTensor* best_value(const std::string& name) const {
    const auto found = std::find_if(best_weights_.begin(), best_weights_.end(),
                                    [&](const auto& kept) { return kept.first == name; });
    return found == best_weights_.end() ? nullptr : &found->second;
  }

  EarlyStoppingOptions options_;
  Monitor monitor_;
  int64_t wait_ = 0;
  int64_t stopped_epoch_ = 0;
  int64_t best_epoch_ = 0;
  std::optional<double> best_;
  NamedTensors best_weights_;  ///< and states, by their names in checkpoints
};

}  // namespace

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options)
    : CallbackHandle(std::make_shared<Stopper>(options)) {}

int64_t EarlyStopping::stopped_epoch() const {
  return static_cast<const Stopper&>(**this).stopped_epoch();
}

int64_t EarlyStopping::best_epoch() const {
  return static_cast<const Stopper&>(**this).best_epoch();
}

}  // namespace tessera
