#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/nn/metric.hpp>

namespace tessera::detail {

/// Metrics with their names in logs.
using NamedMetrics = std::vector<std::pair<std::string, std::shared_ptr<Metric>>>;

/// Returns the trackers() of a layer, by name, and those of its sublayers, each once, named
/// "path/name".
NamedMetrics layer_metrics(const Layer& layer);

}  // namespace tessera::detail
