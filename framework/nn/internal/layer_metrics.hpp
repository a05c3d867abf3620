#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/nn/metric.hpp>

namespace tessera::detail {

/// Mixin for layers that own metrics and update them in call() (keras.layers.Layer.metrics).
/// Training and evaluation reset and report them like the metrics of compile().
class HasMetrics {
 public:
  virtual ~HasMetrics() = default;
  /// Returns the metrics, in the order of logs; the same ones on every call.
  virtual std::vector<std::shared_ptr<Metric>> metrics() const = 0;
};

/// Metrics with their names in logs.
using NamedMetrics = std::vector<std::pair<std::string, std::shared_ptr<Metric>>>;

/// Returns the metrics of a layer and its sublayers, each once, named "path/name".
NamedMetrics layer_metrics(const Layer& layer);

}  // namespace tessera::detail
