#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of the metrics that are the best of one rate where another one is high enough.
struct AtRateOptions {
  int64_t num_thresholds = 200;  ///< even thresholds in [0, 1] that are tried, at least 1
  std::optional<int64_t> class_id = std::nullopt;  ///< only this index of the last axis counts
  std::string name = "";  ///< what logs call the metric; empty: the class's in snake_case
};

/// Highest part of the positive labels that are found, of the thresholds at which at least the part
/// `specificity` of the negative labels is recognized; 0 without any
/// (keras.metrics.SensitivityAtSpecificity).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until it is read. Throws ConfigError unless the part lies in [0, 1] and
/// num_thresholds is positive.
class SensitivityAtSpecificity : public MetricHandle {
 public:
  explicit SensitivityAtSpecificity(double specificity, AtRateOptions options = {});
};

/// Highest part of the negative labels that are recognized, of the thresholds at which at least the
/// part `sensitivity` of the positive labels is found; 0 without any
/// (keras.metrics.SpecificityAtSensitivity).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until it is read. Throws ConfigError unless the part lies in [0, 1] and
/// num_thresholds is positive.
class SpecificityAtSensitivity : public MetricHandle {
 public:
  explicit SpecificityAtSensitivity(double sensitivity, AtRateOptions options = {});
};

/// Highest part of the positive predictions that are right, of the thresholds at which at least the
/// part `recall` of the positive labels is found; 0 without any (keras.metrics.PrecisionAtRecall).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until it is read. Throws ConfigError unless the part lies in [0, 1] and
/// num_thresholds is positive.
class PrecisionAtRecall : public MetricHandle {
 public:
  explicit PrecisionAtRecall(double recall, AtRateOptions options = {});
};

/// Highest part of the positive labels that are found, of the thresholds at which at least the part
/// `precision` of the positive predictions is right; 0 without any
/// (keras.metrics.RecallAtPrecision).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until it is read. Throws ConfigError unless the part lies in [0, 1] and
/// num_thresholds is positive.
class RecallAtPrecision : public MetricHandle {
 public:
  explicit RecallAtPrecision(double precision, AtRateOptions options = {});
};

}  // namespace tessera
