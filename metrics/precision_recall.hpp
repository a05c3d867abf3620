#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Options of Precision and Recall.
struct PrecisionRecallOptions {
  std::vector<double> thresholds = {};             ///< none: 0.5, with top_k none at all
  std::optional<int64_t> top_k = std::nullopt;     ///< only the k largest predictions are positive
  std::optional<int64_t> class_id = std::nullopt;  ///< only this index of the last axis counts
  std::string name = "";                           ///< empty: the class's in snake_case
};
template <class Visit>
void fields(PrecisionRecallOptions& o, Visit visit) {
  visit("thresholds", o.thresholds);
  visit("top_k", o.top_k);
  visit("class_id", o.class_id);
  visit("name", o.name);
}

/// Part of the positive predictions whose label is positive, 0 without any
/// (keras.metrics.Precision). With several thresholds result_values() has one for each, and
/// result() is their mean. Throws ConfigError for a threshold outside [0, 1] and for top_k < 1.
class Precision : public MetricHandle {
 public:
  explicit Precision(PrecisionRecallOptions options = {});
};

/// Part of the positive labels whose prediction is positive, 0 without any (keras.metrics.Recall);
/// otherwise as Precision.
class Recall : public MetricHandle {
 public:
  explicit Recall(PrecisionRecallOptions options = {});
};

}  // namespace tessera
