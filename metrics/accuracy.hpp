#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// How often predictions equal labels (keras.metrics.Accuracy).
///
/// Shape: labels and predictions (batch, …) -> a number.
/// Communication: none until it is read.
class Accuracy : public MetricHandle {
 public:
  explicit Accuracy(MetricOptions options = {});
};

/// The options of BinaryAccuracy.
struct BinaryAccuracyOptions {
  std::string name = "binary_accuracy";  ///< what logs call the metric
  double threshold = 0.5;                ///< a prediction above it says 1; between 0 and 1
};

/// How often labels 0 and 1 say whether a prediction exceeds the threshold
/// (keras.metrics.BinaryAccuracy).
///
/// Shape: labels and predictions (batch, …) -> a number.
/// Communication: none until it is read. Throws ConfigError unless 0 < threshold < 1.
class BinaryAccuracy : public MetricHandle {
 public:
  explicit BinaryAccuracy(BinaryAccuracyOptions options = {});
};

/// How often the largest prediction is at the largest of the labels, one-hot or distributions
/// (keras.metrics.CategoricalAccuracy).
///
/// Shape: labels and predictions (batch, …, classes) -> a number.
/// Communication: none until it is read if the class axis is whole; sharded, reductions of a number
/// for each sample.
class CategoricalAccuracy : public MetricHandle {
 public:
  explicit CategoricalAccuracy(MetricOptions options = {});
};

/// How often the largest of the predictions is at the label, a whole number
/// (keras.metrics.SparseCategoricalAccuracy).
///
/// Shape: labels (batch, …) or (batch, …, 1), predictions (batch, …, classes) -> a number.
/// Communication: none until it is read if the class axis is whole; sharded, reductions of a number
/// for each sample.
///
///     model.compile({.metrics = {SparseCategoricalAccuracy({.name = "acc"})}});
class SparseCategoricalAccuracy : public MetricHandle {
 public:
  explicit SparseCategoricalAccuracy(MetricOptions options = {});
};

/// The options of TopKCategoricalAccuracy.
struct TopKCategoricalAccuracyOptions {
  int64_t k = 5;                                    ///< how many predictions may be the label's
  std::string name = "top_k_categorical_accuracy";  ///< what logs call the metric
};

/// How often fewer than k predictions exceed that of the largest of the labels, one-hot or
/// distributions (keras.metrics.TopKCategoricalAccuracy). Predictions that are not all finite miss.
///
/// Shape: labels and predictions (batch, …, classes) -> a number.
/// Communication: none until it is read if the class axis is whole; sharded, reductions of a number
/// for each sample. Throws ConfigError unless k >= 1, ShapeError for other shapes.
class TopKCategoricalAccuracy : public MetricHandle {
 public:
  explicit TopKCategoricalAccuracy(TopKCategoricalAccuracyOptions options = {});
};

/// The options of SparseTopKCategoricalAccuracy.
struct SparseTopKCategoricalAccuracyOptions {
  int64_t k = 5;  ///< how many predictions may be the label's
  std::string name = "sparse_top_k_categorical_accuracy";  ///< what logs call the metric
  bool from_sorted_ids = false;  ///< predictions are class numbers, the likeliest first
};

/// How often fewer than k of the predictions exceed that of the label, a whole number
/// (keras.metrics.SparseTopKCategoricalAccuracy). Predictions that are not all finite, and labels
/// that are no class, miss.
///
/// Shape: labels (batch, …) or (batch, …, 1), predictions (batch, …, classes) -> a number.
/// Communication: none until it is read if the class axis is whole; sharded, reductions of a number
/// for each sample. Throws ConfigError unless k >= 1, ShapeError for other shapes.
class SparseTopKCategoricalAccuracy : public MetricHandle {
 public:
  explicit SparseTopKCategoricalAccuracy(SparseTopKCategoricalAccuracyOptions options = {});
};

}  // namespace tessera
