#pragma once

#include <functional>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// Functions that stand for Callback's of the same names.
struct LambdaCallbackOptions {
  std::function<void(int64_t epoch)> on_epoch_begin = {};
  std::function<void(int64_t epoch, Logs& logs)> on_epoch_end = {};
  std::function<void()> on_train_begin = {};
  std::function<void(const Logs& logs)> on_train_end = {};
  std::function<void(int64_t batch)> on_train_batch_begin = {};
  std::function<void(int64_t batch, const Logs& logs)> on_train_batch_end = {};
  std::function<void()> on_test_begin = {};
  std::function<void(const Logs& logs)> on_test_end = {};
  std::function<void(int64_t batch)> on_test_batch_begin = {};
  std::function<void(int64_t batch, const Logs& logs)> on_test_batch_end = {};
  std::function<void()> on_predict_begin = {};
  std::function<void()> on_predict_end = {};
  std::function<void(int64_t batch)> on_predict_batch_begin = {};
  std::function<void(int64_t batch)> on_predict_batch_end = {};
};

/// A callback of functions (keras.callbacks.LambdaCallback):
///
///     LambdaCallback({.on_epoch_end = [&](int64_t epoch, Logs& logs) { ... }})
class LambdaCallback : public CallbackHandle {
 public:
  explicit LambdaCallback(const LambdaCallbackOptions& options);
};

}  // namespace tessera
