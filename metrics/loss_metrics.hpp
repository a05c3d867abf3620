#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Square root of the mean of (y_true - y_pred)² (keras.metrics.RootMeanSquaredError).
class RootMeanSquaredError : public MetricHandle {
 public:
  explicit RootMeanSquaredError(MetricOptions options = {});
};

struct LogCoshErrorOptions {
  std::string name = "logcosh";
};
template <class Visit>
void fields(LogCoshErrorOptions& o, Visit visit) {
  visit("name", o.name);
}

/// The mean of the loss LogCosh (keras.metrics.LogCoshError).
class LogCoshError : public MetricHandle {
 public:
  explicit LogCoshError(LogCoshErrorOptions options = {});
};

}  // namespace tessera

/// Means of the losses of the same names, over all batches. Their values are those of the losses,
/// with Reduction::none; sample weights weigh them, and the sum of weights divides them.
namespace tessera::metrics {

/// keras.metrics.MeanSquaredError.
class MeanSquaredError : public MetricHandle {
 public:
  explicit MeanSquaredError(MetricOptions options = {});
};

/// keras.metrics.MeanAbsoluteError.
class MeanAbsoluteError : public MetricHandle {
 public:
  explicit MeanAbsoluteError(MetricOptions options = {});
};

/// keras.metrics.MeanAbsolutePercentageError.
class MeanAbsolutePercentageError : public MetricHandle {
 public:
  explicit MeanAbsolutePercentageError(MetricOptions options = {});
};

/// keras.metrics.MeanSquaredLogarithmicError.
class MeanSquaredLogarithmicError : public MetricHandle {
 public:
  explicit MeanSquaredLogarithmicError(MetricOptions options = {});
};

struct CosineSimilarityOptions {
  std::string name = "cosine_similarity";
  int64_t axis = -1;
};
template <class Visit>
void fields(CosineSimilarityOptions& o, Visit visit) {
  visit("name", o.name);
  visit("axis", o.axis);
}

/// The cosine itself, 1 for one direction; the loss is minus it (keras.metrics.CosineSimilarity).
class CosineSimilarity : public MetricHandle {
 public:
  explicit CosineSimilarity(CosineSimilarityOptions options = {});
};

/// keras.metrics.Hinge.
class Hinge : public MetricHandle {
 public:
  explicit Hinge(MetricOptions options = {});
};

/// keras.metrics.SquaredHinge.
class SquaredHinge : public MetricHandle {
 public:
  explicit SquaredHinge(MetricOptions options = {});
};

/// keras.metrics.CategoricalHinge.
class CategoricalHinge : public MetricHandle {
 public:
  explicit CategoricalHinge(MetricOptions options = {});
};

/// keras.metrics.KLDivergence.
class KLDivergence : public MetricHandle {
 public:
  explicit KLDivergence(MetricOptions options = {});
};

/// keras.metrics.Poisson.
class Poisson : public MetricHandle {
 public:
  explicit Poisson(MetricOptions options = {});
};

struct BinaryCrossentropyOptions {
  std::string name = "binary_crossentropy";
  bool from_logits = false;
  double label_smoothing = 0;
};
template <class Visit>
void fields(BinaryCrossentropyOptions& o, Visit visit) {
  visit("name", o.name);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
}

/// keras.metrics.BinaryCrossentropy.
class BinaryCrossentropy : public MetricHandle {
 public:
  explicit BinaryCrossentropy(BinaryCrossentropyOptions options = {});
};

struct CategoricalCrossentropyOptions {
  std::string name = "categorical_crossentropy";
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
};
template <class Visit>
void fields(CategoricalCrossentropyOptions& o, Visit visit) {
  visit("name", o.name);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
}

/// keras.metrics.CategoricalCrossentropy.
class CategoricalCrossentropy : public MetricHandle {
 public:
  explicit CategoricalCrossentropy(CategoricalCrossentropyOptions options = {});
};

struct SparseCategoricalCrossentropyOptions {
  std::string name = "sparse_categorical_crossentropy";
  bool from_logits = false;
  std::optional<int64_t> ignore_class = std::nullopt;
  int64_t axis = -1;
};
template <class Visit>
void fields(SparseCategoricalCrossentropyOptions& o, Visit visit) {
  visit("name", o.name);
  visit("from_logits", o.from_logits);
  visit("ignore_class", o.ignore_class);
  visit("axis", o.axis);
}

/// keras.metrics.SparseCategoricalCrossentropy. As in Keras, samples of label `ignore_class` add a
/// value of 0, and they count in the mean unless there are sample weights.
class SparseCategoricalCrossentropy : public MetricHandle {
 public:
  explicit SparseCategoricalCrossentropy(SparseCategoricalCrossentropyOptions options = {});
};

}  // namespace tessera::metrics
