#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of the metrics that are the best of one rate where another one is high enough.
struct AtRateOptions {
  int64_t num_thresholds = 200;  ///< evenly in [0, 1], at which predictions are looked at
  std::optional<int64_t> class_id = std::nullopt;  ///< only this index of the last axis counts
  std::string name = "";                           ///< empty: the class's in snake_case
};
template <class Visit>
void fields(AtRateOptions& o, Visit visit) {
  visit("class_id", o.class_id);
  visit("num_thresholds", o.num_thresholds);
  visit("name", o.name);
}

/// Highest part of the positive labels that are found, of the thresholds at which at least the part
/// `specificity` of the negative labels is recognized; 0 without any
/// (keras.metrics.SensitivityAtSpecificity). Throws ConfigError unless the part lies in [0, 1] and
/// num_thresholds is positive, as do the next three.
class SensitivityAtSpecificity : public MetricHandle {
 public:
  explicit SensitivityAtSpecificity(double specificity, AtRateOptions options = {});
};

/// The converse (keras.metrics.SpecificityAtSensitivity).
class SpecificityAtSensitivity : public MetricHandle {
 public:
  explicit SpecificityAtSensitivity(double sensitivity, AtRateOptions options = {});
};

/// Highest part of the positive predictions that are right, of the thresholds at which at least the
/// part `recall` of the positive labels is found; 0 without any (keras.metrics.PrecisionAtRecall).
class PrecisionAtRecall : public MetricHandle {
 public:
  explicit PrecisionAtRecall(double recall, AtRateOptions options = {});
};

/// The converse (keras.metrics.RecallAtPrecision).
class RecallAtPrecision : public MetricHandle {
 public:
  explicit RecallAtPrecision(double precision, AtRateOptions options = {});
};

}  // namespace tessera
