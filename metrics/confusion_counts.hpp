#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of TruePositives, TrueNegatives, FalsePositives and FalseNegatives.
struct ConfusionCountOptions {
  std::vector<double> thresholds = {};  ///< none: 0.5
  std::string name = "";                ///< empty: the class's in snake_case
};
template <class Visit>
void fields(ConfusionCountOptions& o, Visit visit) {
  visit("thresholds", o.thresholds);
  visit("name", o.name);
}

/// Weight of the positive labels whose prediction exceeds the threshold (keras.metrics.
/// TruePositives). A label other than 0 is positive. With several thresholds result_values() has
/// one for each, and result() is their mean. Throws ConfigError for a threshold outside [0, 1].
class TruePositives : public MetricHandle {
 public:
  explicit TruePositives(ConfusionCountOptions options = {});
};

/// Weight of the other labels whose prediction does not exceed the threshold
/// (keras.metrics.TrueNegatives); otherwise as TruePositives.
class TrueNegatives : public MetricHandle {
 public:
  explicit TrueNegatives(ConfusionCountOptions options = {});
};

/// Weight of the other labels whose prediction exceeds the threshold
/// (keras.metrics.FalsePositives); otherwise as TruePositives.
class FalsePositives : public MetricHandle {
 public:
  explicit FalsePositives(ConfusionCountOptions options = {});
};

/// Weight of the positive labels whose prediction does not exceed the threshold
/// (keras.metrics.FalseNegatives); otherwise as TruePositives.
class FalseNegatives : public MetricHandle {
 public:
  explicit FalseNegatives(ConfusionCountOptions options = {});
};

}  // namespace tessera
