#pragma once

#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/metric.hpp>

/// How metrics are configured: fields(options, visit) in a metric's source names its options by
/// Keras' keys. config() and what makes the metric of a configuration come from it.
namespace tessera::detail {

template <class Visit>
void fields(MetricOptions& o, const Visit& visit) {
  visit("name", o.name);
}

/// What makes a metric that takes nothing but options of its "config", for Registered. "dtype" is
/// passed over, since totals are float64.
template <class Made, class Options>
MetricHandle metric_of(JsonObject& config) {
  config.take_optional<Json>("dtype");
  return made_of<Made, Options>(config);
}

}  // namespace tessera::detail
