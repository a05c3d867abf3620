#pragma once

#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/metric.hpp>

/// Configurations of metrics: fields(options, visit) in a metric's source names its options by
/// Keras' keys; config() and the metric's factory derive from it.
namespace tessera::detail {

template <class Visit>
void fields(MetricOptions& o, const Visit& visit) {
  visit("name", o.name);
}

/// Makes a metric that takes only options from its "config"; a factory for Registered. "dtype" is
/// ignored, since totals are float64.
template <class MetricClass, class Options>
MetricHandle metric_of(JsonObject& config) {
  config.take_optional<Json>("dtype");
  return made_of<MetricClass, Options>(config);
}

}  // namespace tessera::detail
