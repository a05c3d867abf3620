#include <tessera/metrics/accuracy.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/internal/function_metric.hpp>
#include <tessera/metrics/internal/metric_config.hpp>
#include <tessera/metrics/internal/number_like.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(BinaryAccuracyOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("threshold", o.threshold);
}

template <class Visit>
void fields(TopKCategoricalAccuracyOptions& o, const Visit& visit) {
  visit("k", o.k);
  visit("name", o.name);
}

template <class Visit>
void fields(SparseTopKCategoricalAccuracyOptions& o, const Visit& visit) {
  visit("k", o.k);
  visit("name", o.name);
  visit("from_sorted_ids", o.from_sorted_ids);
}

namespace {

const Registered registered_accuracy(metric_factories(), {"accuracy"},
                                     metric_of<Accuracy, MetricOptions>);
const Registered registered_binary_accuracy(metric_factories(), {"binary_accuracy"},
                                            metric_of<BinaryAccuracy, BinaryAccuracyOptions>);
const Registered registered_categorical_accuracy(metric_factories(), {"categorical_accuracy"},
                                                 metric_of<CategoricalAccuracy, MetricOptions>);
const Registered registered_sparse_categorical_accuracy(
    metric_factories(), {"sparse_categorical_accuracy"},
    metric_of<SparseCategoricalAccuracy, MetricOptions>);
const Registered registered_top_k(
    metric_factories(), {"top_k_categorical_accuracy"},
    metric_of<TopKCategoricalAccuracy, TopKCategoricalAccuracyOptions>);
const Registered registered_sparse_top_k(
    metric_factories(), {"sparse_top_k_categorical_accuracy"},
    metric_of<SparseTopKCategoricalAccuracy, SparseTopKCategoricalAccuracyOptions>);

DTensor equal_values(const DTensor& y_true, const DTensor& y_pred) {
  const auto [labels, predictions] = match_ranks(ops::cast(y_true, y_pred.dtype()), y_pred);
  check_labels("Accuracy", labels.shape(), predictions.shape());
  return ops::equal(labels, predictions);
}

DTensor binary(const DTensor& y_true, const DTensor& y_pred, double threshold) {
  const auto [labels, predictions] = match_ranks(y_true, y_pred);
  check_labels("BinaryAccuracy", labels.shape(), predictions.shape());
  const DTensor positive = ops::greater(predictions, number_like(threshold, predictions));
  return ops::equal(labels, ops::cast(positive, labels.dtype()));
}

DTensor same_largest(const DTensor& y_true, const DTensor& y_pred) {
  check_labels("CategoricalAccuracy", y_true.shape(), y_pred.shape());
  return ops::equal(ops::argmax(y_true), ops::argmax(y_pred));
}

/// Returns class indices (…) from (…) or (…, 1), for predictions (…, classes).
DTensor class_numbers(const DTensor& y_true, const DTensor& y_pred) {
  const DTensor labels = ops::cast(y_true, at::kLong);
  const bool column = labels.rank() == y_pred.rank() && labels.size(-1) == 1;
  return column ? ops::squeeze(labels, {-1}) : labels;
}

void check_k(const std::string& name, int64_t k) {
  if (k >= 1) return;
  throw ConfigError(name, "k is at least 1", str(k), "give a positive number");
}

void check_classes(const std::string& name, const DTensor& labels, const DTensor& y_pred) {
  const Shape& shape = y_pred.shape();
  if (!shape.empty() && labels.shape() == Shape(shape.begin(), shape.end() - 1)) return;
  throw ShapeError(name, "predictions (..., classes) go with labels (...)",
                   str(to_string(shape), " and ", to_string(labels.shape())),
                   "give one label a prediction");
}

DTensor largest_is(const DTensor& y_true, const DTensor& y_pred) {
  const DTensor labels = class_numbers(y_true, y_pred);
  check_classes("SparseCategoricalAccuracy", labels, y_pred);
  return ops::equal(labels, ops::argmax(y_pred));
}

/// Whether fewer than k predictions exceed that of the label.
DTensor in_top_k(const DTensor& labels, const DTensor& y_pred, int64_t k) {
  const DTensor is_label = ops::cast(ops::one_hot(labels, y_pred.size(-1), at::kByte), at::kBool);
  const DTensor score =
      ops::sum(ops::where(is_label, y_pred, number_like(0, y_pred)), {-1}, /*keepdims=*/true);
  // One sum decides: the number of predictions above the label's, plus k for each non-finite one,
  // minus k if the label is in range; it is negative for a hit.
  const auto count = [](const DTensor& which, double weight) {
    return ops::scale(ops::cast(which, at::kDouble), weight);
  };
  const DTensor infinite = ops::logical_not(ops::is_finite(y_pred));
  const auto weight = static_cast<double>(k);
  const DTensor above =
      count(ops::greater(y_pred, score), 1) + count(infinite, weight) - count(is_label, weight);
  const DTensor total = ops::sum(above, {-1});
  return ops::less(total, number_like(0, total));
}

DTensor among_first(const DTensor& labels, const DTensor& y_pred, int64_t k) {
  const DTensor first = ops::slice(y_pred, -1, 0, std::min(k, y_pred.size(-1)));
  const DTensor expected = ops::expand_dims(ops::cast(labels, y_pred.dtype()), -1);
  return ops::any(ops::equal(first, expected), {-1});
}

template <class Options>
std::shared_ptr<Metric> mean_of(const char* class_name, const Options& options,
                                MeanMetricWrapper::Function function) {
  return std::make_shared<FunctionMetric>(class_name, named_config(class_name, options),
                                          std::move(function));
}

std::shared_ptr<Metric> binary_accuracy(const BinaryAccuracyOptions& options) {
  const double threshold = options.threshold;
  if (!(threshold > 0 && threshold < 1)) {
    throw ConfigError(options.name, "threshold lies between 0 and 1", str(threshold), "use 0.5");
  }
  return mean_of("BinaryAccuracy", options, [=](const DTensor& y_true, const DTensor& y_pred) {
    return binary(y_true, y_pred, threshold);
  });
}

std::shared_ptr<Metric> top_k(const TopKCategoricalAccuracyOptions& options) {
  check_k(options.name, options.k);
  return mean_of("TopKCategoricalAccuracy", options,
                 [o = options](const DTensor& y_true, const DTensor& y_pred) {
                   check_labels(o.name, y_true.shape(), y_pred.shape());
                   return in_top_k(ops::argmax(y_true), y_pred, o.k);
                 });
}

std::shared_ptr<Metric> sparse_top_k(const SparseTopKCategoricalAccuracyOptions& options) {
  check_k(options.name, options.k);
  return mean_of("SparseTopKCategoricalAccuracy", options,
                 [o = options](const DTensor& y_true, const DTensor& y_pred) {
                   const DTensor labels = class_numbers(y_true, y_pred);
                   check_classes(o.name, labels, y_pred);
                   return o.from_sorted_ids ? among_first(labels, y_pred, o.k)
                                            : in_top_k(labels, y_pred, o.k);
                 });
}

}  // namespace

Accuracy::Accuracy(MetricOptions options)
    : MetricHandle(mean_of("Accuracy", options, equal_values)) {}
BinaryAccuracy::BinaryAccuracy(BinaryAccuracyOptions options)
    : MetricHandle(binary_accuracy(options)) {}
CategoricalAccuracy::CategoricalAccuracy(MetricOptions options)
    : MetricHandle(mean_of("CategoricalAccuracy", options, same_largest)) {}
SparseCategoricalAccuracy::SparseCategoricalAccuracy(MetricOptions options)
    : MetricHandle(mean_of("SparseCategoricalAccuracy", options, largest_is)) {}
TopKCategoricalAccuracy::TopKCategoricalAccuracy(TopKCategoricalAccuracyOptions options)
    : MetricHandle(top_k(options)) {}
SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(
    SparseTopKCategoricalAccuracyOptions options)
    : MetricHandle(sparse_top_k(options)) {}

}  // namespace tessera
