#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of the metrics that maximize one rate while another one reaches a bound.
struct AtRateOptions {
  int64_t num_thresholds = 200;  ///< number of evenly spaced thresholds in [0, 1] to try
  std::optional<int64_t> class_id = std::nullopt;  ///< counts only this index of the last axis
  std::string name = "";  ///< name in logs (default: the class name in snake_case)
};

/// Highest sensitivity (fraction of the positive labels predicted positive) over the thresholds at
/// which the specificity (fraction of the negative labels predicted negative) is at least
/// `specificity`; 0 if there are none (keras.metrics.SensitivityAtSpecificity).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until the result is read. Throws ConfigError unless 0 <= specificity <= 1
/// and num_thresholds >= 1.
class SensitivityAtSpecificity : public MetricHandle {
 public:
  explicit SensitivityAtSpecificity(double specificity, AtRateOptions options = {});
};

/// Highest specificity (fraction of the negative labels predicted negative) over the thresholds at
/// which the sensitivity (fraction of the positive labels predicted positive) is at least
/// `sensitivity`; 0 if there are none (keras.metrics.SpecificityAtSensitivity).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until the result is read. Throws ConfigError unless 0 <= sensitivity <= 1
/// and num_thresholds >= 1.
class SpecificityAtSensitivity : public MetricHandle {
 public:
  explicit SpecificityAtSensitivity(double sensitivity, AtRateOptions options = {});
};

/// Highest precision (fraction of the positive predictions that are right) over the thresholds at
/// which the recall (fraction of the positive labels predicted positive) is at least `recall`; 0 if
/// there are none (keras.metrics.PrecisionAtRecall).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until the result is read. Throws ConfigError unless 0 <= recall <= 1 and
/// num_thresholds >= 1.
class PrecisionAtRecall : public MetricHandle {
 public:
  explicit PrecisionAtRecall(double recall, AtRateOptions options = {});
};

/// Highest recall (fraction of the positive labels predicted positive) over the thresholds at which
/// the precision (fraction of the positive predictions that are right) is at least `precision`; 0
/// if there are none (keras.metrics.RecallAtPrecision).
///
/// Shape: labels 0 and 1 and predictions (batch, …) -> a number.
/// Communication: none until the result is read. Throws ConfigError unless 0 <= precision <= 1 and
/// num_thresholds >= 1.
class RecallAtPrecision : public MetricHandle {
 public:
  explicit RecallAtPrecision(double precision, AtRateOptions options = {});
};

}  // namespace tessera
