#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

struct CategoricalAccuracyOptions {
  std::string name = "categorical_accuracy";
};

/// How often the largest prediction is at the largest of the labels, one-hot or distributions
/// (keras.metrics.CategoricalAccuracy). The class axis may be sharded.
class CategoricalAccuracy : public MetricRef {
 public:
  explicit CategoricalAccuracy(CategoricalAccuracyOptions options = {});
};

}  // namespace tessera
