#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// How often predictions equal labels (keras.metrics.Accuracy).
///
/// Shape: labels and predictions (batch, …) -> a number.
/// Communication: none until the result is read.
class Accuracy : public MetricHandle {
 public:
  explicit Accuracy(MetricOptions options = {});
};

/// The options of BinaryAccuracy.
struct BinaryAccuracyOptions {
  std::string name = "binary_accuracy";  ///< name in logs
  double threshold = 0.5;                ///< predictions above it are 1; in (0, 1)
};

/// How often the label is 1 for predictions above the threshold and 0 for the others
/// (keras.metrics.BinaryAccuracy).
///
/// Shape: labels and predictions (batch, …) -> a number.
/// Communication: none until the result is read. Throws ConfigError unless 0 < threshold < 1.
class BinaryAccuracy : public MetricHandle {
 public:
  explicit BinaryAccuracy(BinaryAccuracyOptions options = {});
};

/// How often the argmax of the predictions equals that of the labels, which are one-hot or
/// distributions (keras.metrics.CategoricalAccuracy).
///
/// Shape: labels and predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded: then reductions
/// of one number per sample.
class CategoricalAccuracy : public MetricHandle {
 public:
  explicit CategoricalAccuracy(MetricOptions options = {});
};

/// How often the argmax of the predictions equals the label, a class index
/// (keras.metrics.SparseCategoricalAccuracy).
///
/// Shape: labels (batch, …) or (batch, …, 1), predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded: then reductions
/// of one number per sample.
///
///     model.compile({.metrics = {SparseCategoricalAccuracy({.name = "acc"})}});
class SparseCategoricalAccuracy : public MetricHandle {
 public:
  explicit SparseCategoricalAccuracy(MetricOptions options = {});
};

/// The options of TopKCategoricalAccuracy.
struct TopKCategoricalAccuracyOptions {
  int64_t k = 5;  ///< the label must be among this many largest predictions
  std::string name = "top_k_categorical_accuracy";  ///< name in logs
};

/// How often fewer than k predictions exceed that of the label, the argmax of one-hot labels or
/// distributions (keras.metrics.TopKCategoricalAccuracy). A sample with a non-finite prediction is
/// a miss.
///
/// Shape: labels and predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded: then reductions
/// of one number per sample. Throws ConfigError unless k >= 1, ShapeError for other shapes.
class TopKCategoricalAccuracy : public MetricHandle {
 public:
  explicit TopKCategoricalAccuracy(TopKCategoricalAccuracyOptions options = {});
};

/// The options of SparseTopKCategoricalAccuracy.
struct SparseTopKCategoricalAccuracyOptions {
  int64_t k = 5;  ///< the label must be among this many largest predictions
  std::string name = "sparse_top_k_categorical_accuracy";  ///< name in logs
  bool from_sorted_ids = false;  ///< whether predictions are class indices, most probable first
};

/// How often fewer than k predictions exceed that of the label, a class index
/// (keras.metrics.SparseTopKCategoricalAccuracy). A sample with a non-finite prediction or a label
/// out of range is a miss.
///
/// Shape: labels (batch, …) or (batch, …, 1), predictions (batch, …, classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded: then reductions
/// of one number per sample. Throws ConfigError unless k >= 1, ShapeError for other shapes.
class SparseTopKCategoricalAccuracy : public MetricHandle {
 public:
  explicit SparseTopKCategoricalAccuracy(SparseTopKCategoricalAccuracyOptions options = {});
};

}  // namespace tessera
