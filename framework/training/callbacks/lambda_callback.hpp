#pragma once

#include <functional>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// Functions for the hooks of Callback with the same names.
struct LambdaCallbackOptions {
  /// Called before an epoch, counted from 0.
  std::function<void(int64_t epoch)> on_epoch_begin = {};
  /// Called after an epoch and its validation; may add to `logs`.
  std::function<void(int64_t epoch, Logs& logs)> on_epoch_end = {};
  /// Called before the first epoch of fit().
  std::function<void()> on_train_begin = {};
  /// Called after fit(), with the last epoch's values.
  std::function<void(const Logs& logs)> on_train_end = {};
  /// Called before a batch of fit(), counted from 0 in its epoch.
  std::function<void(int64_t batch)> on_train_batch_begin = {};
  /// Called after a batch of fit(), with the epoch's values so far.
  std::function<void(int64_t batch, const Logs& logs)> on_train_batch_end = {};
  /// Called before evaluate() or a validation.
  std::function<void()> on_test_begin = {};
  /// Called after evaluate() or a validation, with its values.
  std::function<void(const Logs& logs)> on_test_end = {};
  /// Called before a batch of evaluate() or a validation, counted from 0.
  std::function<void(int64_t batch)> on_test_batch_begin = {};
  /// Called after a batch of evaluate() or a validation, with its values so far.
  std::function<void(int64_t batch, const Logs& logs)> on_test_batch_end = {};
  /// Called before predict().
  std::function<void()> on_predict_begin = {};
  /// Called after predict().
  std::function<void()> on_predict_end = {};
  /// Called before a batch of predict(), counted from 0.
  std::function<void(int64_t batch)> on_predict_batch_begin = {};
  /// Called after a batch of predict().
  std::function<void(int64_t batch)> on_predict_batch_end = {};
};

/// A callback made of functions (keras.callbacks.LambdaCallback):
///
///     LambdaCallback({.on_epoch_end = [](int64_t epoch, Logs& logs) {
///       std::cout << epoch << ' ' << *find_value(logs, "loss") << '\n';
///     }})
class LambdaCallback : public CallbackHandle {
 public:
  explicit LambdaCallback(const LambdaCallbackOptions& options);
};

}  // namespace tessera
