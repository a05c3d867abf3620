#include <tessera/framework/nn/internal/layer_metrics.hpp>

#include <functional>
#include <set>

namespace tessera::detail {

NamedMetrics layer_metrics(const Layer& layer) {
  NamedMetrics all;
  std::set<const Layer*> seen;
  const std::function<void(const Layer&)> visit = [&](const Layer& one) {
    if (!seen.insert(&one).second) return;
    if (const auto* const has = dynamic_cast<const HasMetrics*>(&one)) {
      for (const auto& metric : has->metrics()) {
        all.emplace_back(one.path() + "/" + metric->name(), metric);
      }
    }
    for (const auto& inner : one.sublayers()) visit(*inner);
  };
  visit(layer);
  return all;
}

}  // namespace tessera::detail
