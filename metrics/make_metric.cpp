#include <tessera/framework/nn/registry.hpp>
#include <tessera/metrics/metrics.hpp>

namespace tessera {

std::shared_ptr<Metric> make_metric(const std::string& kind, const std::string& name) {
  static const Factories<MetricRef, std::string> factories = {
      {"accuracy", [](const std::string& n) { return Accuracy({.name = n}); }},
      {"binary_accuracy", [](const std::string& n) { return BinaryAccuracy({.name = n}); }},
      {"categorical_accuracy",
       [](const std::string& n) { return CategoricalAccuracy({.name = n}); }},
      {"mean", [](const std::string& n) { return Mean({.name = n}); }},
      {"sparse_categorical_accuracy",
       [](const std::string& n) { return SparseCategoricalAccuracy({.name = n}); }},
  };
  return make_by_name("metric", factories, kind, name).made();
}

}  // namespace tessera
