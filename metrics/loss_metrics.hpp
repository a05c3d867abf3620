#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Square root of the mean of (y_true - y_pred)² (keras.metrics.RootMeanSquaredError).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class RootMeanSquaredError : public MetricHandle {
 public:
  explicit RootMeanSquaredError(MetricOptions options = {});
};

/// The options of LogCoshError.
struct LogCoshErrorOptions {
  std::string name = "logcosh";  ///< name in logs
};

/// Mean of log(cosh(y_pred - y_true)), the loss LogCosh (keras.metrics.LogCoshError).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class LogCoshError : public MetricHandle {
 public:
  explicit LogCoshError(LogCoshErrorOptions options = {});
};

}  // namespace tessera

/// Metrics with the name of a loss: the mean of that loss, with Reduction::none, over the samples
/// of all batches, weighted by the sample weights.
namespace tessera::metrics {

/// Mean of (y_true - y_pred)² (keras.metrics.MeanSquaredError).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class MeanSquaredError : public MetricHandle {
 public:
  explicit MeanSquaredError(MetricOptions options = {});
};

/// Mean of |y_true - y_pred| (keras.metrics.MeanAbsoluteError).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class MeanAbsoluteError : public MetricHandle {
 public:
  explicit MeanAbsoluteError(MetricOptions options = {});
};

/// Mean of 100 |y_true - y_pred| / max(|y_true|, 1e-7) (keras.metrics.MeanAbsolutePercentageError).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class MeanAbsolutePercentageError : public MetricHandle {
 public:
  explicit MeanAbsolutePercentageError(MetricOptions options = {});
};

/// Mean of (log(y_true + 1) - log(y_pred + 1))², both first clipped to at least 1e-7
/// (keras.metrics.MeanSquaredLogarithmicError).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class MeanSquaredLogarithmicError : public MetricHandle {
 public:
  explicit MeanSquaredLogarithmicError(MetricOptions options = {});
};

/// The options of CosineSimilarity.
struct CosineSimilarityOptions {
  std::string name = "cosine_similarity";  ///< name in logs
  int64_t axis = -1;                       ///< axis of the vectors
};

/// Mean of the cosine similarity of labels and predictions as vectors along `axis`; 1 for the same
/// direction. The loss of this name is its negative (keras.metrics.CosineSimilarity).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class CosineSimilarity : public MetricHandle {
 public:
  explicit CosineSimilarity(CosineSimilarityOptions options = {});
};

/// Mean of max(1 - y p, 0), labels y -1 and 1, or 0 and 1 (keras.metrics.Hinge).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: an all-reduce of one bool in every update.
class Hinge : public MetricHandle {
 public:
  explicit Hinge(MetricOptions options = {});
};

/// Mean of max(1 - y p, 0)², labels y -1 and 1, or 0 and 1 (keras.metrics.SquaredHinge).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: an all-reduce of one bool in every update.
class SquaredHinge : public MetricHandle {
 public:
  explicit SquaredHinge(MetricOptions options = {});
};

/// Mean of max(max((1 - y) p) - sum(y p) + 1, 0) over classes, labels y one-hot
/// (keras.metrics.CategoricalHinge).
///
/// Shape: labels and predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read.
class CategoricalHinge : public MetricHandle {
 public:
  explicit CategoricalHinge(MetricOptions options = {});
};

/// Mean of sum(y log(y / p)) over classes, both clipped to [1e-7, 1] (keras.metrics.KLDivergence).
///
/// Shape: labels and predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read.
class KLDivergence : public MetricHandle {
 public:
  explicit KLDivergence(MetricOptions options = {});
};

/// Mean of p - y log(p + 1e-7) (keras.metrics.Poisson).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read.
class Poisson : public MetricHandle {
 public:
  explicit Poisson(MetricOptions options = {});
};

/// The options of BinaryCrossentropy.
struct BinaryCrossentropyOptions {
  std::string name = "binary_crossentropy";  ///< name in logs
  bool from_logits = false;    ///< whether predictions are logits rather than probabilities
  double label_smoothing = 0;  ///< s in [0, 1]: labels become y (1 - s) + s / 2
};

/// Mean of -y log p - (1 - y) log(1 - p), probabilities p clipped to [1e-7, 1 - 1e-7]
/// (keras.metrics.BinaryCrossentropy).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read. Throws
/// ConfigError unless 0 <= label_smoothing <= 1, ShapeError for different shapes.
class BinaryCrossentropy : public MetricHandle {
 public:
  explicit BinaryCrossentropy(BinaryCrossentropyOptions options = {});
};

/// The options of CategoricalCrossentropy.
struct CategoricalCrossentropyOptions {
  std::string name = "categorical_crossentropy";  ///< name in logs
  bool from_logits = false;    ///< whether predictions are logits rather than probabilities
  double label_smoothing = 0;  ///< s in [0, 1]: labels become y (1 - s) + s / classes
  int64_t axis = -1;           ///< axis of the classes
};

/// Mean of -sum(y log p) over the class axis, labels y distributions such as one-hot ones
/// (keras.metrics.CategoricalCrossentropy).
///
/// Shape: labels and predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded. Throws
/// ConfigError unless 0 <= label_smoothing <= 1, ShapeError for different shapes.
class CategoricalCrossentropy : public MetricHandle {
 public:
  explicit CategoricalCrossentropy(CategoricalCrossentropyOptions options = {});
};

/// The options of SparseCategoricalCrossentropy.
struct SparseCategoricalCrossentropyOptions {
  std::string name = "sparse_categorical_crossentropy";  ///< name in logs
  bool from_logits = false;  ///< whether predictions are logits rather than probabilities
  std::optional<int64_t> ignore_class = std::nullopt;  ///< label of samples with value 0
  int64_t axis = -1;                                   ///< axis of the classes in predictions
};

/// Mean of -log p[label], labels being class indices (keras.metrics.SparseCategoricalCrossentropy).
/// Samples with label `ignore_class` have the value 0; as in Keras, they count in the mean unless
/// there are sample weights.
///
/// Shape: labels (batch, …) or (batch, …, 1), predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded. Throws
/// ShapeError for labels of other shapes.
class SparseCategoricalCrossentropy : public MetricHandle {
 public:
  explicit SparseCategoricalCrossentropy(SparseCategoricalCrossentropyOptions options = {});
};

}  // namespace tessera::metrics
