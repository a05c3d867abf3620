#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of TruePositives, TrueNegatives, FalsePositives and FalseNegatives.
struct ConfusionCountOptions {
  /// Thresholds in [0, 1] above which predictions are positive (default: 0.5).
  std::vector<double> thresholds = {};
  std::string name = "";  ///< name in logs (default: the class name in snake_case)
};

/// Total weight of the positive labels whose prediction exceeds the threshold
/// (keras.metrics.TruePositives). A label other than 0 is positive. With several thresholds,
/// result_values() has one value each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until the result is read. Throws ConfigError for a threshold outside [0, 1].
class TruePositives : public MetricHandle {
 public:
  explicit TruePositives(ConfusionCountOptions options = {});
};

/// Total weight of the labels 0 whose prediction does not exceed the threshold
/// (keras.metrics.TrueNegatives). With several thresholds, result_values() has one value each, and
/// result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until the result is read. Throws ConfigError for a threshold outside [0, 1].
class TrueNegatives : public MetricHandle {
 public:
  explicit TrueNegatives(ConfusionCountOptions options = {});
};

/// Total weight of the labels 0 whose prediction exceeds the threshold
/// (keras.metrics.FalsePositives).
/// With several thresholds, result_values() has one value each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until the result is read. Throws ConfigError for a threshold outside [0, 1].
class FalsePositives : public MetricHandle {
 public:
  explicit FalsePositives(ConfusionCountOptions options = {});
};

/// Total weight of the positive labels whose prediction does not exceed the threshold
/// (keras.metrics.FalseNegatives). A label other than 0 is positive. With several thresholds,
/// result_values() has one value each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until the result is read. Throws ConfigError for a threshold outside [0, 1].
class FalseNegatives : public MetricHandle {
 public:
  explicit FalseNegatives(ConfusionCountOptions options = {});
};

}  // namespace tessera
