#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of IoU and MeanIoU.
struct IoUOptions {
  std::string name = "";  ///< empty: the class's in snake_case
  /// Of Keras' counts: one of whole numbers takes sample weights without their fractions.
  std::string dtype = "int";
  std::optional<int64_t> ignore_class = std::nullopt;  ///< label of samples that do not count
  bool sparse_y_true = true;  ///< labels are numbers of classes, else scores of each along `axis`
  bool sparse_y_pred = true;  ///< the same of predictions
  int64_t axis = -1;
};
template <class Visit>
void fields(IoUOptions& o, Visit visit) {
  visit("name", o.name);
  visit("dtype", o.dtype);
  visit("ignore_class", o.ignore_class);
  visit("sparse_y_true", o.sparse_y_true);
  visit("sparse_y_pred", o.sparse_y_pred);
  visit("axis", o.axis);
}

/// Options of OneHotIoU and OneHotMeanIoU, as IoUOptions'.
struct OneHotIoUOptions {
  std::string name = "";
  std::string dtype = "int";
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_pred = false;
  int64_t axis = -1;
};
template <class Visit>
void fields(OneHotIoUOptions& o, Visit visit) {
  visit("name", o.name);
  visit("dtype", o.dtype);
  visit("ignore_class", o.ignore_class);
  visit("sparse_y_pred", o.sparse_y_pred);
  visit("axis", o.axis);
}

/// Mean over the target classes of true positives / (true positives + false positives + false
/// negatives), without the classes that are in neither labels nor predictions; 0 without any
/// (keras.metrics.IoU). Samples of which label or prediction is no class do not count. Throws
/// ConfigError unless every target class is in [0, num_classes).
class IoU : public MetricHandle {
 public:
  explicit IoU(int64_t num_classes, std::vector<int64_t> target_class_ids, IoUOptions options = {});
};

/// IoU of all classes (keras.metrics.MeanIoU).
class MeanIoU : public MetricHandle {
 public:
  explicit MeanIoU(int64_t num_classes, IoUOptions options = {});
};

/// IoU of labels that are one-hot along `axis` (keras.metrics.OneHotIoU).
class OneHotIoU : public MetricHandle {
 public:
  explicit OneHotIoU(int64_t num_classes, std::vector<int64_t> target_class_ids,
                     OneHotIoUOptions options = {});
};

/// OneHotIoU of all classes (keras.metrics.OneHotMeanIoU).
class OneHotMeanIoU : public MetricHandle {
 public:
  explicit OneHotMeanIoU(int64_t num_classes, OneHotIoUOptions options = {});
};

struct BinaryIoUOptions {
  std::vector<int64_t> target_class_ids = {0, 1};
  double threshold = 0.5;  ///< of predictions of class 1
  std::string name = "";
  std::string dtype = "int";  ///< as IoUOptions'
};
template <class Visit>
void fields(BinaryIoUOptions& o, Visit visit) {
  visit("target_class_ids", o.target_class_ids);
  visit("threshold", o.threshold);
  visit("name", o.name);
  visit("dtype", o.dtype);
}

/// IoU of two classes; predictions of at least the threshold are of class 1
/// (keras.metrics.BinaryIoU).
class BinaryIoU : public MetricHandle {
 public:
  explicit BinaryIoU(BinaryIoUOptions options = {});
};

}  // namespace tessera
