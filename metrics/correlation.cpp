#include <tessera/metrics/correlation.hpp>

#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/metrics/internal/function_metric.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(PearsonCorrelationOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("axis", o.axis);
}

template <class Visit>
void fields(ConcordanceCorrelationOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("axis", o.axis);
}

namespace {

const Registered registered_pearson_correlation(
    metric_factories(), {"pearson_correlation"},
    metric_of<PearsonCorrelation, PearsonCorrelationOptions>);
const Registered registered_concordance_correlation(
    metric_factories(), {"concordance_correlation"},
    metric_of<ConcordanceCorrelation, ConcordanceCorrelationOptions>);

std::pair<DTensor, DTensor> matched(const DTensor& y_true, const DTensor& y_pred) {
  const at::ScalarType dtype = loss_dtype(y_pred);
  return match_ranks(ops::cast(y_true, dtype), ops::cast(y_pred, dtype));
}

DTensor standardized(const DTensor& x, int64_t axis) {
  const auto [mean, variance] = ops::moments(x, {axis}, /*keepdims=*/true);
  return (x - mean) / ops::sqrt(variance);
}

DTensor pearson(const DTensor& y_true, const DTensor& y_pred, int64_t axis) {
  const auto [labels, predictions] = matched(y_true, y_pred);
  check_labels("PearsonCorrelation", labels.shape(), predictions.shape());
  return ops::mean(standardized(labels, axis) * standardized(predictions, axis), {axis});
}

DTensor concordance(const DTensor& y_true, const DTensor& y_pred, int64_t axis) {
  const auto [labels, predictions] = matched(y_true, y_pred);
  check_labels("ConcordanceCorrelation", labels.shape(), predictions.shape());
  const auto [label_mean, label_variance] = ops::moments(labels, {axis}, /*keepdims=*/true);
  const auto [mean, variance] = ops::moments(predictions, {axis}, /*keepdims=*/true);
  const DTensor common = (labels - label_mean) * (predictions - mean);
  const DTensor norm = label_variance + variance + ops::square(label_mean - mean);
  return ops::mean(common * 2 / (norm + keras_epsilon), {axis});
}

}  // namespace

PearsonCorrelation::PearsonCorrelation(PearsonCorrelationOptions options)
    : MetricHandle(std::make_shared<FunctionMetric>(
          "PearsonCorrelation", named_config("PearsonCorrelation", options),
          [axis = options.axis](const DTensor& y_true, const DTensor& y_pred) {
            return pearson(y_true, y_pred, axis);
          })) {}

ConcordanceCorrelation::ConcordanceCorrelation(ConcordanceCorrelationOptions options)
    : MetricHandle(std::make_shared<FunctionMetric>(
          "ConcordanceCorrelation", named_config("ConcordanceCorrelation", options),
          [axis = options.axis](const DTensor& y_true, const DTensor& y_pred) {
            return concordance(y_true, y_pred, axis);
          })) {}

}  // namespace tessera
