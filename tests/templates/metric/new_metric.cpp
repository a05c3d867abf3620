#include <tessera/metrics/new_metric.hpp>

#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/metrics/internal/function_metric.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(NewMetricOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("factor", o.factor);
}

namespace {

const Registered registered_new_metric(metric_factories(), {"new_metric"},
                                       metric_of<NewMetric, NewMetricOptions>);

DTensor scaled_difference(const DTensor& y_true, const DTensor& y_pred, double factor) {
  const auto [labels, predictions] = match_ranks(ops::cast(y_true, y_pred.dtype()), y_pred);
  check_labels("NewMetric", labels.shape(), predictions.shape());
  return ops::scale(ops::abs(labels - predictions), factor);
}

}  // namespace

NewMetric::NewMetric(NewMetricOptions options)
    : MetricHandle(std::make_shared<FunctionMetric>(
          "NewMetric", named_config("NewMetric", options),
          [factor = options.factor](const DTensor& y_true, const DTensor& y_pred) {
            return scaled_difference(y_true, y_pred, factor);
          })) {}

}  // namespace tessera
