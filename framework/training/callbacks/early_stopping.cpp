#include <tessera/framework/training/callbacks/early_stopping.hpp>

#include <memory>
#include <vector>

#include <tessera/framework/base/error.hpp>
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
    std::vector<Variable> weights = trainer().layer().weights();
    for (size_t i = 0; i < weights.size(); ++i) weights[i].assign(best_weights_[i]);
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

  NamedTensors tensors() const override {
    NamedTensors named;
    if (best_weights_.empty()) return named;
    const std::vector<Variable> weights = trainer().layer().weights();
    for (size_t i = 0; i < weights.size(); ++i) {
      named.emplace_back(weights[i].path(), best_weights_[i]);
    }
    return named;
  }

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
    // If weights are missing, the next epoch's weights are the first candidates.
    if (!options_.restore_best_weights || tensors.size() != trainer().layer().weights().size())
      return;
    for (const auto& [path, value] : tensors) best_weights_.push_back(value);
  }

 private:
  void keep_weights(int64_t epoch) {
    best_epoch_ = epoch;
    best_weights_.clear();
    for (const Variable& weight : trainer().layer().weights())
      best_weights_.push_back(weight.value());
  }

  EarlyStoppingOptions options_;
  Monitor monitor_;
  int64_t wait_ = 0;
  int64_t stopped_epoch_ = 0;
  int64_t best_epoch_ = 0;
  std::optional<double> best_;
  std::vector<DTensor> best_weights_;
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
