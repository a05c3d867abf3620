#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// The options of NewMetric.
struct NewMetricOptions {
  std::string name = "new_metric";  ///< what logs call the metric
  double factor = 1;                ///< what differences are multiplied by
};

/// Mean of factor · |labels - predictions|.
///
/// Shape: labels and predictions (batch, …) -> a number.
/// Communication: none until it is read.
class NewMetric : public MetricHandle {
 public:
  explicit NewMetric(NewMetricOptions options = {});
};

}  // namespace tessera
