#pragma once

#include <string>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// Mean over the last axis of (y_true - y_pred)² (keras.losses.MeanSquaredError).
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class MeanSquaredError : public LossHandle {
 public:
  explicit MeanSquaredError(LossOptions options = {});
};

/// Mean over the last axis of |y_true - y_pred| (keras.losses.MeanAbsoluteError).
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class MeanAbsoluteError : public LossHandle {
 public:
  explicit MeanAbsoluteError(LossOptions options = {});
};

/// 100 times the mean over the last axis of |y_true - y_pred| / max(|y_true|, 1e-7)
/// (keras.losses.MeanAbsolutePercentageError).
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class MeanAbsolutePercentageError : public LossHandle {
 public:
  explicit MeanAbsolutePercentageError(LossOptions options = {});
};

/// Mean over the last axis of (log(y_true + 1) - log(y_pred + 1))², both clipped to at least 1e-7
/// (keras.losses.MeanSquaredLogarithmicError).
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class MeanSquaredLogarithmicError : public LossHandle {
 public:
  explicit MeanSquaredLogarithmicError(LossOptions options = {});
};

/// Mean over the last axis of log(cosh(y_pred - y_true)), without overflow (keras.losses.LogCosh).
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class LogCosh : public LossHandle {
 public:
  explicit LogCosh(LossOptions options = {});
};

/// The options of Huber.
struct HuberOptions {
  double delta = 1;  ///< error at which the loss turns from quadratic to linear
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "huber_loss";                       ///< name in error messages
};

/// Mean over the last axis of e² / 2 for an error |e| <= delta, else delta |e| - delta² / 2
/// (keras.losses.Huber; Huber, 1964).
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class Huber : public LossHandle {
 public:
  explicit Huber(HuberOptions options = {});
};

/// The options of CosineSimilarity.
struct CosineSimilarityOptions {
  int64_t axis = -1;                                     ///< axis of the vectors
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "cosine_similarity";                ///< name in error messages
};

/// Minus the cosine of the angle between labels and predictions, vectors along `axis`; -1 for the
/// same direction (keras.losses.CosineSimilarity). Norms are clipped to at least 1e-7.
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class CosineSimilarity : public LossHandle {
 public:
  explicit CosineSimilarity(CosineSimilarityOptions options = {});
};

}  // namespace tessera
