#include <tessera/metrics/internal/confusion.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/segment.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/internal/number_like.hpp>

namespace tessera::detail {
namespace {

/// Whether sorted thresholds are evenly spaced over [0, 1], within numpy.allclose's tolerance.
bool evenly_spaced(const std::vector<double>& sorted) {
  if (sorted.size() < 3) return false;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double even = static_cast<double>(i) / static_cast<double>(sorted.size() - 1);
    if (std::abs(sorted[i] - even) > 1e-7 + 1e-5 * even) return false;
  }
  return true;
}

/// Replaces all but the k largest along the last axis by -inf; of equal values, the first are kept.
DTensor only_largest(const DTensor& x, int64_t k) {
  const DTensor none = number_like(-std::numeric_limits<double>::infinity(), x);
  DTensor remaining = x, selected;
  for (int64_t i = 0; i < k; ++i) {
    const DTensor hit =
        ops::cast(ops::one_hot(ops::argmax(remaining), x.size(-1), at::kByte), at::kBool);
    selected = selected.defined() ? ops::logical_or(selected, hit) : hit;
    remaining = ops::where(hit, none, remaining);
  }
  return ops::where(selected, x, none);
}

/// Returns a vector as a replicated tensor.
DTensor replicated(const at::Tensor& values, const Mesh& mesh) {
  return pack(values, Layout::replicated(mesh, 1));
}

}  // namespace

void check_thresholds(const std::string& name, const std::vector<double>& thresholds) {
  for (const double threshold : thresholds) {
    if (threshold >= 0 && threshold <= 1) continue;
    throw ConfigError(name, "thresholds lie in [0, 1]", str(threshold),
                      "pass fractions, such as 0.5");
  }
}

ConfusionMetric::ConfusionMetric(const char* class_name, Json config, ConfusionOptions options)
    : Metric(config.at("name").get<std::string>()),
      class_name_(class_name),
      config_(std::move(config)),
      options_(std::move(options)),
      sorted_(options_.thresholds) {
  std::sort(sorted_.begin(), sorted_.end());
  even_ = evenly_spaced(sorted_);
  if (options_.top_k.value_or(1) < 1) {
    throw ConfigError(name(), "top_k is at least 1", str(*options_.top_k),
                      "give a positive number");
  }
  if (options_.class_id.value_or(0) < 0) {
    throw ConfigError(name(), "class_id is at least 0", str(*options_.class_id),
                      "count classes from 0");
  }
}

/// Returns how many thresholds each prediction exceeds, as float32.
DTensor ConfusionMetric::exceeded(const DTensor& predictions) const {
  if (!even_) {
    DTensor sum;
    for (const double threshold : sorted_) {
      const DTensor above =
          ops::cast(ops::greater(predictions, number_like(threshold, predictions)), at::kFloat);
      sum = sum.defined() ? sum + above : above;
    }
    return sum;
  }
  const DTensor clipped = ops::clip(predictions, 0, 1);
  // NaN exceeds no threshold.
  const DTensor positive = ops::greater(clipped, number_like(0, clipped));
  const DTensor bucket = ops::ceil(clipped * static_cast<double>(sorted_.size() - 1));
  const DTensor sum = ops::where(positive, bucket, number_like(0, clipped));
  return sorted_.front() < 0 ? ops::maximum(sum, number_like(1, sum)) : sum;
}

/// Returns the weight of each label, float64 in the labels' shape.
DTensor ConfusionMetric::weights(const DTensor& labels, const DTensor& sample_weight) const {
  DTensor all = filled(labels.shape(), 1, at::kDouble, labels.layout().resolved());
  if (sample_weight.defined()) {
    const DTensor weight = ops::cast(sample_weight, at::kDouble);
    all = all * checked_weights(name(), labels.shape(), weight);
  }
  if (options_.label_weights.empty() || options_.multi_label) return all;
  const auto count = static_cast<int64_t>(options_.label_weights.size());
  if (count != labels.size(-1)) {
    throw ShapeError(name(), str("predictions of ", count, " labels, as many as label_weights"),
                     to_string(labels.shape()), "give one weight for each index of the last axis");
  }
  return all * replicated(at::tensor(options_.label_weights, at::kDouble), labels.mesh());
}

/// Throws ShapeError unless labels and predictions can be counted.
void ConfusionMetric::check(const Shape& labels, const Shape& predictions) const {
  if (labels != predictions) {
    throw ShapeError(name(), "labels have the shape of the predictions, " + to_string(predictions),
                     to_string(labels), "reshape the labels or the model's output");
  }
  if (options_.multi_label && predictions.size() != 2) {
    throw ShapeError(name(), "with multi_label, predictions have the shape (batch, labels)",
                     to_string(predictions), "reshape them, or leave out multi_label");
  }
  const int64_t classes = predictions.empty() ? 0 : predictions.back();
  if (options_.top_k.value_or(0) > classes || options_.class_id.value_or(-1) >= classes) {
    throw ShapeError(name(), "predictions have top_k classes, and class_id is one of them",
                     to_string(predictions), "lower top_k or class_id");
  }
  const auto restored = static_cast<int64_t>(known_totals() / (2 * (sorted_.size() + 1)));
  const int64_t labels_before = labels_ != 0 ? labels_ : restored;
  if (options_.multi_label && labels_before != 0 && labels_before != classes) {
    throw ShapeError(name(), str("every batch has ", labels_before, " labels"),
                     to_string(predictions), "use a new metric for other labels");
  }
}

void ConfusionMetric::update(const DTensor& y_true, const DTensor& y_pred,
                             const DTensor& sample_weight) {
  const NoRecording no_tape;
  auto [labels, predictions] = match_ranks(y_true, ops::cast(y_pred, at::kFloat));
  check(labels.shape(), predictions.shape());
  if (options_.from_logits) predictions = ops::sigmoid(predictions);
  if (options_.top_k) predictions = only_largest(predictions, *options_.top_k);
  if (options_.class_id) {
    labels = ops::slice(labels, -1, *options_.class_id, 1);
    predictions = ops::slice(predictions, -1, *options_.class_id, 1);
  }
  const int64_t count = options_.multi_label ? predictions.size(1) : 1;
  const auto each = static_cast<int64_t>(2 * (sorted_.size() + 1));
  const DTensor positive = ops::not_equal(labels, number_like(0, labels));
  DTensor ids = ops::cast(exceeded(predictions) * 2 + ops::cast(positive, at::kFloat), at::kLong);
  if (count > 1) ids = ids + replicated(at::arange(count, at::kLong) * each, ids.mesh());
  add(ops::segment_sum(weights(labels, sample_weight), ids, count * each));
  labels_ = count;
}

std::vector<std::vector<Confusion>> ConfusionMetric::counts(
    const std::vector<double>& totals) const {
  const size_t buckets = sorted_.size() + 1;
  const size_t labels = std::max<size_t>(1, totals.size() / (2 * buckets));
  std::vector<double> sums = totals;
  sums.resize(labels * 2 * buckets);
  std::vector<std::vector<Confusion>> all;
  for (size_t label = 0; label < labels; ++label) {
    double* of_label = sums.data() + label * 2 * buckets;
    for (size_t i = 2; i < 2 * buckets; ++i) of_label[i] += of_label[i - 2];
    const double negatives = of_label[2 * buckets - 2], positives = of_label[2 * buckets - 1];
    std::vector<Confusion> by_threshold;
    for (const double threshold : options_.thresholds) {
      const auto it = std::lower_bound(sorted_.begin(), sorted_.end(), threshold);
      const double* below = of_label + 2 * (it - sorted_.begin());
      by_threshold.push_back({.true_positives = positives - below[1],
                              .false_positives = negatives - below[0],
                              .true_negatives = below[0],
                              .false_negatives = below[1]});
    }
    all.push_back(std::move(by_threshold));
  }
  return all;
}

void ConfusionMetric::check_totals(size_t count) const {
  const size_t each = 2 * (sorted_.size() + 1);
  const auto labels = static_cast<size_t>(labels_);
  const bool any = options_.multi_label && labels == 0;
  const bool fits = any ? count % each == 0 : count == each * std::max<size_t>(1, labels);
  check_count(fits, options_.multi_label ? str(each, " for each label") : str(each), count);
}

double ConfusionMetric::result(const std::vector<double>& totals) const {
  const std::vector<double> values = result_values(totals);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace tessera::detail
