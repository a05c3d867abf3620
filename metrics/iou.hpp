#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of IoU and MeanIoU.
struct IoUOptions {
  std::string name = "";  ///< name in logs (default: the class name in snake_case)
  /// dtype of Keras' counts; an integer dtype truncates sample weights.
  std::string dtype = "int";
  std::optional<int64_t> ignore_class = std::nullopt;  ///< label of samples to ignore
  bool sparse_y_true = true;  ///< whether labels are class indices rather than class scores
  bool sparse_y_pred = true;  ///< whether predictions are class indices rather than class scores
  int64_t axis = -1;          ///< axis of the class scores
};

/// Options of OneHotIoU and OneHotMeanIoU.
struct OneHotIoUOptions {
  std::string name = "";  ///< name in logs (default: the class name in snake_case)
  /// dtype of Keras' counts; an integer dtype truncates sample weights.
  std::string dtype = "int";
  std::optional<int64_t> ignore_class = std::nullopt;  ///< label of samples to ignore
  bool sparse_y_pred = false;  ///< whether predictions are class indices rather than class scores
  int64_t axis = -1;           ///< axis of the class scores
};

/// Mean over the target classes of true positives / (true positives + false positives + false
/// negatives) (keras.metrics.IoU). Classes that occur in neither labels nor predictions are left
/// out; 0 if none occurs. A prediction outside [0, num_classes) is a false negative of its label's
/// class; Keras leaves such samples out.
///
/// Shape: class indices (batch, …) or scores (batch, …, num_classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded. Throws
/// ConfigError unless every target class, and every label other than ignore_class, is in
/// [0, num_classes), ShapeError unless there are equally many labels and predictions.
///
///     IoU(3, {0, 2})  // mean IoU of classes 0 and 2 of three
class IoU : public MetricHandle {
 public:
  explicit IoU(int64_t num_classes, std::vector<int64_t> target_class_ids, IoUOptions options = {});
};

/// IoU of all classes (keras.metrics.MeanIoU).
///
/// Shape: class indices (batch, …) or scores (batch, …, num_classes) -> a number.
/// Communication: none until the result is read, unless the class axis is sharded. Throws
/// ConfigError for num_classes < 1 and for a label outside [0, num_classes) other than
/// ignore_class, ShapeError unless there are equally many labels and predictions.
class MeanIoU : public MetricHandle {
 public:
  explicit MeanIoU(int64_t num_classes, IoUOptions options = {});
};

/// IoU of labels that are one-hot along `axis` (keras.metrics.OneHotIoU).
///
/// Shape: labels (batch, …, num_classes), predictions of that shape or class indices (batch, …) ->
/// a number.
/// Communication: none until the result is read, unless the class axis is sharded. Throws
/// ConfigError unless every target class, and every label other than ignore_class, is in
/// [0, num_classes), ShapeError unless there are equally many labels and predictions.
class OneHotIoU : public MetricHandle {
 public:
  explicit OneHotIoU(int64_t num_classes, std::vector<int64_t> target_class_ids,
                     OneHotIoUOptions options = {});
};

/// OneHotIoU of all classes (keras.metrics.OneHotMeanIoU).
///
/// Shape: labels (batch, …, num_classes), predictions of that shape or class indices (batch, …) ->
/// a number.
/// Communication: none until the result is read, unless the class axis is sharded. Throws
/// ConfigError for num_classes < 1 and for a label outside [0, num_classes) other than
/// ignore_class, ShapeError unless there are equally many labels and predictions.
class OneHotMeanIoU : public MetricHandle {
 public:
  explicit OneHotMeanIoU(int64_t num_classes, OneHotIoUOptions options = {});
};

/// The options of BinaryIoU.
struct BinaryIoUOptions {
  std::vector<int64_t> target_class_ids = {0, 1};  ///< classes to average over: 0, 1 or both
  double threshold = 0.5;                          ///< predictions >= threshold are of class 1
  std::string name = "";                           ///< name in logs; empty: "binary_io_u"
  /// dtype of Keras' counts; an integer dtype truncates sample weights.
  std::string dtype = "int";
};

/// IoU of two classes; predictions >= threshold are of class 1
/// (keras.metrics.BinaryIoU).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until the result is read. Throws ConfigError for a target class or label
/// that is not 0 or 1, ShapeError unless there are equally many labels and predictions.
class BinaryIoU : public MetricHandle {
 public:
  explicit BinaryIoU(BinaryIoUOptions options = {});
};

}  // namespace tessera
