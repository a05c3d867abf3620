#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/training/logs.hpp>

namespace tessera {

class Model;
class Trainer;

/// Values by the paths of the weights that they are like.
using NamedTensors = std::vector<std::pair<std::string, DTensor>>;

/// What fit, evaluate and predict tell while they run (keras.callbacks.Callback). Every process of
/// the mesh calls its own callbacks with the same values. Epochs and batches count from 0.
///
///     class Patience : public Callback {
///       void on_epoch_end(int64_t epoch, Logs& logs) override {
///         if (epoch > 3 && find_value(logs, "loss") > 2.0) model().set_stop_training(true);
///       }
///     };
///     model.fit(data, {.callbacks = {std::make_shared<Patience>()}});
class Callback {
 public:
  /// What a run is.
  struct Params {
    int64_t epochs = 1;
    std::optional<int64_t> steps = std::nullopt;  ///< batches of an epoch, if known
    int verbose = 1;
    /// Whether this process is the one that prints and writes files.
    bool is_first_rank = true;
    /// All callbacks of the run, in the order in which they are told; valid while it lasts.
    std::vector<Callback*> callbacks = {};
  };

  virtual ~Callback() = default;
  virtual void on_train_begin() {}
  /// `logs` are those of the last epoch.
  virtual void on_train_end(const Logs& /*logs*/) {}
  virtual void on_epoch_begin(int64_t /*epoch*/) {}
  /// What is added to `logs` goes to later callbacks, the history and the bar.
  virtual void on_epoch_end(int64_t /*epoch*/, Logs& /*logs*/) {}
  virtual void on_train_batch_begin(int64_t /*batch*/) {}
  /// `logs` hold the loss of the epoch so far, and the metrics if a callback that overrides this
  /// wants them.
  virtual void on_train_batch_end(int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_test_begin() {}
  virtual void on_test_end(const Logs& /*logs*/) {}
  virtual void on_test_batch_begin(int64_t /*batch*/) {}
  virtual void on_test_batch_end(int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_predict_begin() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_begin(int64_t /*batch*/) {}
  virtual void on_predict_batch_end(int64_t /*batch*/) {}

  /// A signal asks the run to end within seconds: save what a run that goes on needs. Called
  /// between two steps, on every process after the same one; fit throws Interrupted after it.
  virtual void on_interrupt() {}

  /// Whether to read the metrics, which is a reduction over the mesh, for the end of this batch.
  /// Asked only of a callback that overrides on_train_batch_end or on_test_batch_end; the same
  /// answer on every process.
  virtual bool wants_batch_logs(int64_t /*batch*/) { return true; }
  /// Whether fit is to go on where it would throw because the loss is not finite.
  virtual bool accepts_non_finite_loss() const { return false; }

  /// Whether the run's other callbacks hear of everything before this one does: for one that saves
  /// what they have come to.
  virtual bool is_told_last() const { return false; }

  /// What a checkpoint calls it; by default its C++ class.
  virtual std::string class_name() const;
  /// What a run that goes on from a checkpoint needs of this callback; null: nothing.
  virtual Json state() const { return nullptr; }
  /// The values that a run that goes on needs of this callback, each of the shape and dtype of the
  /// weight whose path it has.
  virtual NamedTensors tensors() const { return {}; }
  /// Takes what state() and tensors() gave, after on_train_begin(). Throws ConfigError for anything
  /// else.
  virtual void restore(const Json& /*state*/, const NamedTensors& /*tensors*/) {}

  void set_model(Trainer& model) { trainer_ = &model; }
  void set_params(const Params& params) { params_ = params; }

 protected:
  /// The model that fit, evaluate or predict runs for; valid while it does.
  Model& model() const;
  /// The model's training methods.
  Trainer& trainer() const { return *trainer_; }
  const Params& params() const { return params_; }
  /// Writes a line to the standard output, on the first process only.
  void print(const std::string& line) const;
  /// Writes a line to the standard error output, on the first process only.
  void warn(const std::string& line) const;

 private:
  Trainer* trainer_ = nullptr;
  Params params_;
};

/// A handle to a callback, made of one by value or shared. Copies are the same callback.
class CallbackHandle {
 public:
  template <std::derived_from<Callback> Made>
  CallbackHandle(std::shared_ptr<Made> made)  // NOLINT: reads as data
      : made_(std::move(made)),
        hears_train_batches_(derived(*made_, typeid(Made)) || train<Made>()),
        hears_test_batches_(derived(*made_, typeid(Made)) || test<Made>()) {}
  template <std::derived_from<Callback> Made>
  CallbackHandle(Made made) : CallbackHandle(std::make_shared<Made>(std::move(made))) {}  // NOLINT

  Callback& operator*() const { return *made_; }
  Callback* operator->() const { return made_.get(); }
  /// Whether its class overrides on_train_batch_end, on_test_batch_end; true if not known.
  bool hears_train_batches() const { return hears_train_batches_; }
  bool hears_test_batches() const { return hears_test_batches_; }

 private:
  /// Whether it is of a class that only run time knows, which may override anything.
  static bool derived(const Callback& made, const std::type_info& known) {
    return typeid(made) != known;
  }
  // A member function that is not overridden belongs to the base.
  using BatchEnd = void (Callback::*)(int64_t, const Logs&);
  template <class Made>
  static constexpr bool train() {
    if constexpr (std::is_same_v<Made, Callback>) return true;
    if constexpr (requires { &Made::on_train_batch_end; }) {
      return !std::is_same_v<decltype(&Made::on_train_batch_end), BatchEnd>;
    }
    return true;
  }
  template <class Made>
  static constexpr bool test() {
    if constexpr (std::is_same_v<Made, Callback>) return true;
    if constexpr (requires { &Made::on_test_batch_end; }) {
      return !std::is_same_v<decltype(&Made::on_test_batch_end), BatchEnd>;
    }
    return true;
  }

  std::shared_ptr<Callback> made_;
  bool hears_train_batches_;
  bool hears_test_batches_;
};

}  // namespace tessera
