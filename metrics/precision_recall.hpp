#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of Precision and Recall.
struct PrecisionRecallOptions {
  /// Thresholds in [0, 1] above which predictions are positive (default: 0.5; no threshold if top_k
  /// is set).
  std::vector<double> thresholds = {};
  std::optional<int64_t> top_k = std::nullopt;     ///< only the k largest predictions are positive
  std::optional<int64_t> class_id = std::nullopt;  ///< counts only this index of the last axis
  std::string name = "";  ///< name in logs (default: the class name in snake_case)
};

/// Fraction of the positive predictions whose label is positive; 0 if there are none
/// (keras.metrics.Precision). With several thresholds, result_values() has one value each, and
/// result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until the result is read, unless top_k is set and the last axis is sharded.
/// Throws ConfigError for a threshold outside [0, 1] and for top_k < 1.
class Precision : public MetricHandle {
 public:
  explicit Precision(PrecisionRecallOptions options = {});
};

/// Fraction of the positive labels whose prediction is positive; 0 if there are none
/// (keras.metrics.Recall).
/// With several thresholds, result_values() has one value each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until the result is read, unless top_k is set and the last axis is sharded.
/// Throws ConfigError for a threshold outside [0, 1] and for top_k < 1.
class Recall : public MetricHandle {
 public:
  explicit Recall(PrecisionRecallOptions options = {});
};

}  // namespace tessera
