#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// How often predictions equal labels (keras.metrics.Accuracy).
class Accuracy : public MetricHandle {
 public:
  explicit Accuracy(MetricOptions options = {});
};

struct BinaryAccuracyOptions {
  std::string name = "binary_accuracy";
  double threshold = 0.5;
};
template <class Visit>
void fields(BinaryAccuracyOptions& o, Visit visit) {
  visit("name", o.name);
  visit("threshold", o.threshold);
}

/// How often labels 0 and 1 say whether a prediction exceeds the threshold
/// (keras.metrics.BinaryAccuracy). Throws ConfigError unless 0 < threshold < 1.
class BinaryAccuracy : public MetricHandle {
 public:
  explicit BinaryAccuracy(BinaryAccuracyOptions options = {});
};

/// How often the largest prediction is at the largest of the labels, one-hot or distributions
/// (keras.metrics.CategoricalAccuracy). The class axis may be sharded.
class CategoricalAccuracy : public MetricHandle {
 public:
  explicit CategoricalAccuracy(MetricOptions options = {});
};

/// How often the largest of the predictions (…, classes) is at the label, labels (…) or (…, 1)
/// (keras.metrics.SparseCategoricalAccuracy). The class axis may be sharded.
class SparseCategoricalAccuracy : public MetricHandle {
 public:
  explicit SparseCategoricalAccuracy(MetricOptions options = {});
};

struct TopKCategoricalAccuracyOptions {
  int64_t k = 5;
  std::string name = "top_k_categorical_accuracy";
};
template <class Visit>
void fields(TopKCategoricalAccuracyOptions& o, Visit visit) {
  visit("k", o.k);
  visit("name", o.name);
}

/// How often fewer than k predictions exceed that of the largest of the labels, one-hot or
/// distributions (keras.metrics.TopKCategoricalAccuracy). Predictions that are not all finite miss.
/// The class axis may be sharded. Throws ConfigError unless k >= 1.
class TopKCategoricalAccuracy : public MetricHandle {
 public:
  explicit TopKCategoricalAccuracy(TopKCategoricalAccuracyOptions options = {});
};

struct SparseTopKCategoricalAccuracyOptions {
  int64_t k = 5;
  std::string name = "sparse_top_k_categorical_accuracy";
  bool from_sorted_ids = false;
};
template <class Visit>
void fields(SparseTopKCategoricalAccuracyOptions& o, Visit visit) {
  visit("k", o.k);
  visit("name", o.name);
  visit("from_sorted_ids", o.from_sorted_ids);
}

/// How often fewer than k of the predictions (…, classes) exceed that of the label, labels (…) or
/// (…, 1); with `from_sorted_ids` predictions are class numbers, the likeliest first
/// (keras.metrics.SparseTopKCategoricalAccuracy). Predictions that are not all finite, and labels
/// that are no class, miss. The class axis may be sharded. Throws ConfigError unless k >= 1.
class SparseTopKCategoricalAccuracy : public MetricHandle {
 public:
  explicit SparseTopKCategoricalAccuracy(SparseTopKCategoricalAccuracyOptions options = {});
};

}  // namespace tessera
