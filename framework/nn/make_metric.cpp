#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/metric.hpp>

namespace tessera {

using namespace detail;

ConfigFactories<MetricHandle>& detail::metric_factories() {
  static ConfigFactories<MetricHandle> factories;
  return factories;
}

std::shared_ptr<Metric> detail::make_metric(const std::string& kind, const JsonObject& options) {
  return make_by_name("metric", metric_factories(), kind, options).get();
}

std::shared_ptr<Metric> detail::make_metric(const std::string& kind, const std::string& name) {
  const Json options = {{"name", name}};
  return make_metric(kind, JsonObject(options, JsonPath("metric")));
}

std::shared_ptr<Metric> metric_from_config(const Json& json, const std::string& where) {
  const Json none = Json::object();
  if (json.is_string()) {
    return make_metric(json.get<std::string>(), JsonObject(none, JsonPath(where)));
  }
  const auto [kind, options] = read_serialized(json, JsonPath(where));
  return make_metric(kind, options);
}

std::vector<std::string> detail::metric_names() { return names_in(metric_factories()); }

}  // namespace tessera
