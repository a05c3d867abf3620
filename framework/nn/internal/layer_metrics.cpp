#include <tessera/framework/nn/internal/layer_metrics.hpp>

#include <functional>
#include <set>

namespace tessera::detail {

NamedMetrics layer_metrics(const Layer& layer) {
  NamedMetrics all;
  std::set<const Layer*> seen;
  const std::function<void(const Layer&)> visit = [&](const Layer& one) {
    if (!seen.insert(&one).second) return;
    for (const MetricHandle& metric : one.trackers()) {
      const std::string prefix = &one == &layer && one.is_model() ? "" : one.path() + "/";
      all.emplace_back(prefix + metric->name(), metric.get());
    }
    for (const auto& inner : one.sublayers()) visit(*inner);
  };
  visit(layer);
  return all;
}

}  // namespace tessera::detail
