#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

struct SparseCategoricalAccuracyOptions {
  std::string name = "sparse_categorical_accuracy";
};

/// How often the largest of the predictions (…, classes) is at the label, labels (…) or (…, 1)
/// (keras.metrics.SparseCategoricalAccuracy). The class axis may be sharded.
class SparseCategoricalAccuracy : public MetricRef {
 public:
  explicit SparseCategoricalAccuracy(SparseCategoricalAccuracyOptions options = {});
};

}  // namespace tessera
