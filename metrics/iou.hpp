#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of IoU and MeanIoU.
struct IoUOptions {
  std::string name = "";  ///< what logs call the metric; empty: the class's in snake_case
  /// Dtype of Keras' counts: one of whole numbers takes sample weights without their fractions.
  std::string dtype = "int";
  std::optional<int64_t> ignore_class = std::nullopt;  ///< label of samples that do not count
  bool sparse_y_true = true;  ///< labels are class numbers, else a score of each class
  bool sparse_y_pred = true;  ///< predictions are class numbers, else a score of each class
  int64_t axis = -1;          ///< axis of the scores of classes
};

/// Options of OneHotIoU and OneHotMeanIoU.
struct OneHotIoUOptions {
  std::string name = "";  ///< what logs call the metric; empty: the class's in snake_case
  /// Dtype of Keras' counts: one of whole numbers takes sample weights without their fractions.
  std::string dtype = "int";
  std::optional<int64_t> ignore_class = std::nullopt;  ///< label of samples that do not count
  bool sparse_y_pred = false;  ///< predictions are class numbers, else a score of each class
  int64_t axis = -1;           ///< axis of the scores of classes
};

/// Mean over the target classes of true positives / (true positives + false positives + false
/// negatives), without the classes that are in neither labels nor predictions; 0 without any
/// (keras.metrics.IoU). Samples of which label or prediction is no class do not count.
///
/// Shape: class numbers (batch, …) or scores (batch, …, num_classes) -> a number.
/// Communication: none until it is read if the class axis is whole. Throws ConfigError unless every
/// target class is in [0, num_classes), ShapeError unless labels are as many as predictions.
///
///     IoU(3, {0, 2})  // of classes 0 and 2 of three
class IoU : public MetricHandle {
 public:
  explicit IoU(int64_t num_classes, std::vector<int64_t> target_class_ids, IoUOptions options = {});
};

/// IoU of all classes (keras.metrics.MeanIoU).
///
/// Shape: class numbers (batch, …) or scores (batch, …, num_classes) -> a number.
/// Communication: none until it is read if the class axis is whole. Throws ConfigError for
/// num_classes < 1, ShapeError unless labels are as many as predictions.
class MeanIoU : public MetricHandle {
 public:
  explicit MeanIoU(int64_t num_classes, IoUOptions options = {});
};

/// IoU of labels that are one-hot along `axis` (keras.metrics.OneHotIoU).
///
/// Shape: labels (batch, …, num_classes), predictions of that shape or class numbers (batch, …) ->
/// a number.
/// Communication: none until it is read if the class axis is whole. Throws ConfigError unless every
/// target class is in [0, num_classes), ShapeError unless labels are as many as predictions.
class OneHotIoU : public MetricHandle {
 public:
  explicit OneHotIoU(int64_t num_classes, std::vector<int64_t> target_class_ids,
                     OneHotIoUOptions options = {});
};

/// OneHotIoU of all classes (keras.metrics.OneHotMeanIoU).
///
/// Shape: labels (batch, …, num_classes), predictions of that shape or class numbers (batch, …) ->
/// a number.
/// Communication: none until it is read if the class axis is whole. Throws ConfigError for
/// num_classes < 1, ShapeError unless labels are as many as predictions.
class OneHotMeanIoU : public MetricHandle {
 public:
  explicit OneHotMeanIoU(int64_t num_classes, OneHotIoUOptions options = {});
};

/// The options of BinaryIoU.
struct BinaryIoUOptions {
  std::vector<int64_t> target_class_ids = {0, 1};  ///< classes whose mean is taken, of 0 and 1
  double threshold = 0.5;                          ///< predictions of at least that are of class 1
  std::string name = "";  ///< what logs call the metric; empty: "binary_io_u"
  /// Dtype of Keras' counts: one of whole numbers takes sample weights without their fractions.
  std::string dtype = "int";
};

/// IoU of two classes; predictions of at least the threshold are of class 1
/// (keras.metrics.BinaryIoU).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until it is read. Throws ConfigError for a target class that is not 0 or 1,
/// ShapeError unless labels are as many as predictions.
class BinaryIoU : public MetricHandle {
 public:
  explicit BinaryIoU(BinaryIoUOptions options = {});
};

}  // namespace tessera
