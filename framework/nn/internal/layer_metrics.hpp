#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/nn/metric.hpp>

namespace tessera::detail {

/// What a layer is besides, whose call() adds to metrics of its own (keras.layers.Layer.metrics).
/// Training and evaluation begin them anew and show them as they do those of compile().
class HasMetrics {
 public:
  virtual ~HasMetrics() = default;
  /// Always the same, in the order of logs.
  virtual std::vector<std::shared_ptr<Metric>> metrics() const = 0;
};

/// Metrics by their names in logs.
using NamedMetrics = std::vector<std::pair<std::string, std::shared_ptr<Metric>>>;

/// The metrics of a layer and of those inside, each once, as "path/name".
NamedMetrics layer_metrics(const Layer& layer);

}  // namespace tessera::detail
