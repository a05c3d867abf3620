#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

struct BinaryAccuracyOptions {
  std::string name = "binary_accuracy";
  double threshold = 0.5;
};

/// How often labels 0 and 1 say whether a prediction exceeds the threshold
/// (keras.metrics.BinaryAccuracy). Throws ConfigError unless 0 < threshold < 1.
class BinaryAccuracy : public MetricRef {
 public:
  explicit BinaryAccuracy(BinaryAccuracyOptions options = {});
};

}  // namespace tessera
