#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of Precision and Recall.
struct PrecisionRecallOptions {
  /// Predictions above one are positive there; in [0, 1]; empty: 0.5, with top_k none at all.
  std::vector<double> thresholds = {};
  std::optional<int64_t> top_k = std::nullopt;     ///< only the k largest predictions are positive
  std::optional<int64_t> class_id = std::nullopt;  ///< only this index of the last axis counts
  std::string name = "";  ///< what logs call the metric; empty: the class's in snake_case
};

/// Part of the positive predictions whose label is positive, 0 without any
/// (keras.metrics.Precision). With several thresholds result_values() has one for each, and
/// result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until it is read, but with top_k where the last axis is cut. Throws
/// ConfigError for a threshold outside [0, 1] and for top_k < 1.
class Precision : public MetricHandle {
 public:
  explicit Precision(PrecisionRecallOptions options = {});
};

/// Part of the positive labels whose prediction is positive, 0 without any (keras.metrics.Recall).
/// With several thresholds result_values() has one for each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until it is read, but with top_k where the last axis is cut. Throws
/// ConfigError for a threshold outside [0, 1] and for top_k < 1.
class Recall : public MetricHandle {
 public:
  explicit Recall(PrecisionRecallOptions options = {});
};

}  // namespace tessera
