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

/// Values by weight path, each with the shape and dtype of that weight; those of a layer's state by
/// its name in checkpoints, "states/PATH/NAME".
using NamedTensors = std::vector<std::pair<std::string, DTensor>>;

/// Hooks that fit, evaluate and predict call (keras.callbacks.Callback). Every process of the mesh
/// calls its own callbacks with the same values. Epochs and batches count from 0.
///
///     class Patience : public Callback {
///       void on_epoch_end(int64_t epoch, Logs& logs) override {
///         if (epoch > 3 && find_value(logs, "loss") > 2.0) model().set_stop_training(true);
///       }
///     };
///     model.fit(data, {.callbacks = {std::make_shared<Patience>()}});
class Callback {
 public:
  /// Parameters of a run.
  struct Params {
    int64_t epochs = 1;
    std::optional<int64_t> steps = std::nullopt;  ///< batches of an epoch, if known
    int verbose = 1;
    /// Whether this process prints and writes files; one of the mesh does.
    bool is_first_rank = true;
    /// All callbacks of the run, in the order in which they are called; valid during the run.
    std::vector<Callback*> callbacks = {};
    /// Whether the state of the run comes from the memory of its processes: this one joins them, or
    /// some are gone. Then callbacks need not read it from files.
    bool restored_from_memory = false;
  };

  /// A change of the processes of an elastic run.
  struct MembershipChange {
    int64_t processes = 1;    ///< number of the processes that go on
    std::string reason = {};  ///< who is gone and why; empty if processes only joined or left
  };

  virtual ~Callback() = default;
  virtual void on_train_begin() {}
  /// Called with the last epoch's logs.
  virtual void on_train_end(const Logs& /*logs*/) {}
  virtual void on_epoch_begin(int64_t /*epoch*/) {}
  /// Values added to `logs` reach later callbacks, the history and the progress bar.
  virtual void on_epoch_end(int64_t /*epoch*/, Logs& /*logs*/) {}
  virtual void on_train_batch_begin(int64_t /*batch*/) {}
  /// `logs` hold the epoch's loss so far, and its metrics if a callback that overrides this hook
  /// wants_batch_logs().
  virtual void on_train_batch_end(int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_test_begin() {}
  virtual void on_test_end(const Logs& /*logs*/) {}
  virtual void on_test_batch_begin(int64_t /*batch*/) {}
  virtual void on_test_batch_end(int64_t /*batch*/, const Logs& /*logs*/) {}
  virtual void on_predict_begin() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_begin(int64_t /*batch*/) {}
  virtual void on_predict_batch_end(int64_t /*batch*/) {}

  /// Called when a signal asks the run to end within seconds: save what a resumed run needs. Called
  /// between two steps, on every process after the same step; fit then throws Interrupted.
  virtual void on_interrupt() {}

  /// Called in the processes of an elastic run that go on after others were lost, left or joined,
  /// before the state of the last snapshot is restored, which includes restore(). Those that joined
  /// call on_train_begin() instead, at the same time: both must make the same collectives. Then
  /// on_epoch_begin() is called for the epoch in which training goes on.
  virtual void on_membership_change(const MembershipChange& /*change*/) {}

  /// Whether to read the metrics at the end of this batch, which takes a reduction over the mesh.
  /// Called only if the class overrides on_train_batch_end or on_test_batch_end. Must return the
  /// same on every process.
  virtual bool wants_batch_logs(int64_t /*batch*/) { return true; }
  /// Whether fit continues instead of throwing when the loss is not finite.
  virtual bool accepts_non_finite_loss() const { return false; }

  /// Whether this callback is called after the run's other callbacks, to save their state.
  virtual bool is_called_last() const { return false; }

  /// Returns the callback's name in a checkpoint (default: its C++ class).
  virtual std::string class_name() const;
  /// Returns the state that a run resumed from a checkpoint needs of this callback; null: none.
  virtual Json state() const { return nullptr; }
  /// Returns the tensors that a resumed run needs of this callback, each with the name, shape and
  /// dtype of a weight or of a layer's state.
  virtual NamedTensors tensors() const { return {}; }
  /// Restores results of state() and tensors(), after on_train_begin(). Throws ConfigError for
  /// anything else.
  virtual void restore(const Json& /*state*/, const NamedTensors& /*tensors*/) {}

  void set_model(Trainer& model) { trainer_ = &model; }
  void set_params(const Params& params) { params_ = params; }

 protected:
  /// Returns the model of the run; valid during the run.
  Model& model() const;
  /// Returns the model's training methods.
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

/// A handle to a callback, made from a value or a shared pointer. Copies share the callback.
class CallbackHandle {
 public:
  template <std::derived_from<Callback> Made>
  CallbackHandle(std::shared_ptr<Made> made)  // NOLINT: reads as data
      : made_(std::move(made)),
        overrides_train_batch_end_(derived(*made_, typeid(Made)) || train<Made>()),
        overrides_test_batch_end_(derived(*made_, typeid(Made)) || test<Made>()) {}
  template <std::derived_from<Callback> Made>
  CallbackHandle(Made made) : CallbackHandle(std::make_shared<Made>(std::move(made))) {}  // NOLINT

  Callback& operator*() const { return *made_; }
  Callback* operator->() const { return made_.get(); }
  /// Whether the class overrides on_train_batch_end or on_test_batch_end; true if unknown.
  bool overrides_train_batch_end() const { return overrides_train_batch_end_; }
  bool overrides_test_batch_end() const { return overrides_test_batch_end_; }

 private:
  /// Whether the dynamic type is not the static one, so that it may override anything.
  static bool derived(const Callback& made, const std::type_info& known) {
    return typeid(made) != known;
  }
  // The address of a member function that is not overridden has the base's type.
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
  bool overrides_train_batch_end_;
  bool overrides_test_batch_end_;
};

}  // namespace tessera
