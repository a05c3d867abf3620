#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

struct AccuracyOptions {
  std::string name = "accuracy";
};

/// How often predictions equal labels (keras.metrics.Accuracy).
class Accuracy : public MetricRef {
 public:
  explicit Accuracy(AccuracyOptions options = {});
};

}  // namespace tessera
