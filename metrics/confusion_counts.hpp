#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of TruePositives, TrueNegatives, FalsePositives and FalseNegatives.
struct ConfusionCountOptions {
  std::vector<double> thresholds = {};  ///< a prediction above is positive; in [0, 1]; empty: 0.5
  std::string name = "";  ///< what logs call the metric; empty: the class's in snake_case
};

/// Weight of the positive labels whose prediction exceeds the threshold
/// (keras.metrics.TruePositives). A label other than 0 is positive. With several thresholds
/// result_values() has one for each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until it is read. Throws ConfigError for a threshold outside [0, 1].
class TruePositives : public MetricHandle {
 public:
  explicit TruePositives(ConfusionCountOptions options = {});
};

/// Weight of the labels 0 whose prediction does not exceed the threshold
/// (keras.metrics.TrueNegatives). With several thresholds result_values() has one for each, and
/// result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until it is read. Throws ConfigError for a threshold outside [0, 1].
class TrueNegatives : public MetricHandle {
 public:
  explicit TrueNegatives(ConfusionCountOptions options = {});
};

/// Weight of the labels 0 whose prediction exceeds the threshold (keras.metrics.FalsePositives).
/// With several thresholds result_values() has one for each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until it is read. Throws ConfigError for a threshold outside [0, 1].
class FalsePositives : public MetricHandle {
 public:
  explicit FalsePositives(ConfusionCountOptions options = {});
};

/// Weight of the positive labels whose prediction does not exceed the threshold
/// (keras.metrics.FalseNegatives). A label other than 0 is positive. With several thresholds
/// result_values() has one for each, and result() is their mean.
///
/// Shape: labels and predictions (batch, …) -> a number for each threshold.
/// Communication: none until it is read. Throws ConfigError for a threshold outside [0, 1].
class FalseNegatives : public MetricHandle {
 public:
  explicit FalseNegatives(ConfusionCountOptions options = {});
};

}  // namespace tessera
