#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// The options of NewMetric.
struct NewMetricOptions {
  std::string name = "new_metric";  ///< name of the metric in logs
  double factor = 1;                ///< factor that differences are multiplied by
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
