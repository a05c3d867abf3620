#include <tessera/metrics/loss_metrics.hpp>

#include <cmath>

#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/metrics/internal/function_metric.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LogCoshErrorOptions& o, const Visit& visit) {
  visit("name", o.name);
}

namespace {

const Registered registered_root_mean_squared_error(metric_factories(), {"root_mean_squared_error"},
                                                    metric_of<RootMeanSquaredError, MetricOptions>);
const Registered registered_log_cosh_error(metric_factories(), {"log_cosh_error"},
                                           metric_of<LogCoshError, LogCoshErrorOptions>);

/// The mean of a loss over samples.
class LossMetric : public FunctionMetric {
 public:
  LossMetric(const char* class_name, Json config, LossHandle loss)
      : FunctionMetric(class_name, std::move(config),
                       [loss](const DTensor& y_true, const DTensor& y_pred) {
                         return loss->values(y_true, y_pred);
                       }),
        loss_(std::move(loss)) {}

  void update(const DTensor& y_true, const DTensor& y_pred, const DTensor& sample_weight) override {
    const NoRecording no_tape;
    DTensor weights = sample_weight;
    if (weights.defined()) {
      weights = masked_weights(name(), weights, loss_->mask(y_true, y_pred), weights.dtype());
    }
    MeanMetric::update(y_true, y_pred, weights);
  }

 private:
  LossHandle loss_;
};

class CosineMetric : public FunctionMetric {
 public:
  CosineMetric(Json config, const LossHandle& loss)
      : FunctionMetric("CosineSimilarity", std::move(config),
                       [loss](const DTensor& y_true, const DTensor& y_pred) {
                         return ops::neg(loss->values(y_true, y_pred));
                       }) {}
};

class RootMeanSquaredErrorMetric : public FunctionMetric {
 public:
  using Metric::result;
  explicit RootMeanSquaredErrorMetric(Json config)
      : FunctionMetric("RootMeanSquaredError", std::move(config), square) {}
  /// Ignores the predictions' mask, as Keras does.
  void update(const DTensor& y_true, const DTensor& y_pred, const DTensor& sample_weight) override {
    const NoRecording no_tape;
    add_values(square(y_true, y_pred), sample_weight);
  }
  double result(const std::vector<double>& totals) const override {
    return std::sqrt(MeanMetric::result(totals));
  }

 private:
  static DTensor square(const DTensor& y_true, const DTensor& y_pred) {
    const at::ScalarType dtype = loss_dtype(y_pred);
    const auto [labels, predictions] =
        match_ranks(ops::cast(y_true, dtype), ops::cast(y_pred, dtype));
    check_labels("RootMeanSquaredError", labels.shape(), predictions.shape());
    return ops::square(predictions - labels);
  }
};

template <class Options>
std::shared_ptr<Metric> mean_of(const char* class_name, const Options& options, LossHandle loss) {
  return std::make_shared<LossMetric>(class_name, named_config(class_name, options),
                                      std::move(loss));
}

}  // namespace

RootMeanSquaredError::RootMeanSquaredError(MetricOptions options)
    : MetricHandle(std::make_shared<RootMeanSquaredErrorMetric>(
          named_config("RootMeanSquaredError", options))) {}
LogCoshError::LogCoshError(LogCoshErrorOptions options)
    : MetricHandle(mean_of("LogCoshError", options, LogCosh())) {}

namespace metrics {

template <class Visit>
void fields(CosineSimilarityOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("axis", o.axis);
}

template <class Visit>
void fields(BinaryCrossentropyOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
}

template <class Visit>
void fields(CategoricalCrossentropyOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
}

template <class Visit>
void fields(SparseCategoricalCrossentropyOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("from_logits", o.from_logits);
  visit("ignore_class", o.ignore_class);
  visit("axis", o.axis);
}

namespace {

const Registered registered_mean_squared_error(metric_factories(), {"mean_squared_error", "mse"},
                                               metric_of<MeanSquaredError, MetricOptions>);
const Registered registered_mean_absolute_error(metric_factories(), {"mean_absolute_error", "mae"},
                                                metric_of<MeanAbsoluteError, MetricOptions>);
const Registered registered_mean_absolute_percentage_error(
    metric_factories(), {"mean_absolute_percentage_error", "mape"},
    metric_of<MeanAbsolutePercentageError, MetricOptions>);
const Registered registered_mean_squared_logarithmic_error(
    metric_factories(), {"mean_squared_logarithmic_error", "msle"},
    metric_of<MeanSquaredLogarithmicError, MetricOptions>);
const Registered registered_cosine_similarity(metric_factories(), {"cosine_similarity"},
                                              metric_of<CosineSimilarity, CosineSimilarityOptions>);
const Registered registered_hinge(metric_factories(), {"hinge"}, metric_of<Hinge, MetricOptions>);
const Registered registered_squared_hinge(metric_factories(), {"squared_hinge"},
                                          metric_of<SquaredHinge, MetricOptions>);
const Registered registered_categorical_hinge(metric_factories(), {"categorical_hinge"},
                                              metric_of<CategoricalHinge, MetricOptions>);
const Registered registered_kl_divergence(metric_factories(), {"kl_divergence"},
                                          metric_of<KLDivergence, MetricOptions>);
const Registered registered_poisson(metric_factories(), {"poisson"},
                                    metric_of<Poisson, MetricOptions>);
const Registered registered_binary_crossentropy(
    metric_factories(), {"binary_crossentropy", "bce"},
    metric_of<BinaryCrossentropy, BinaryCrossentropyOptions>);
const Registered registered_categorical_crossentropy(
    metric_factories(), {"categorical_crossentropy"},
    metric_of<CategoricalCrossentropy, CategoricalCrossentropyOptions>);
const Registered registered_sparse_categorical_crossentropy(
    metric_factories(), {"sparse_categorical_crossentropy"},
    metric_of<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions>);

}  // namespace

MeanSquaredError::MeanSquaredError(MetricOptions options)
    : MetricHandle(mean_of("MeanSquaredError", options, tessera::MeanSquaredError())) {}
MeanAbsoluteError::MeanAbsoluteError(MetricOptions options)
    : MetricHandle(mean_of("MeanAbsoluteError", options, tessera::MeanAbsoluteError())) {}
MeanAbsolutePercentageError::MeanAbsolutePercentageError(MetricOptions options)
    : MetricHandle(mean_of("MeanAbsolutePercentageError", options,
                           tessera::MeanAbsolutePercentageError())) {}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(MetricOptions options)
    : MetricHandle(mean_of("MeanSquaredLogarithmicError", options,
                           tessera::MeanSquaredLogarithmicError())) {}
CosineSimilarity::CosineSimilarity(CosineSimilarityOptions options)
    : MetricHandle(std::make_shared<CosineMetric>(
          named_config("CosineSimilarity", options),
          tessera::CosineSimilarity({.axis = options.axis, .name = options.name}))) {}
Hinge::Hinge(MetricOptions options) : MetricHandle(mean_of("Hinge", options, tessera::Hinge())) {}
SquaredHinge::SquaredHinge(MetricOptions options)
    : MetricHandle(mean_of("SquaredHinge", options, tessera::SquaredHinge())) {}
CategoricalHinge::CategoricalHinge(MetricOptions options)
    : MetricHandle(mean_of("CategoricalHinge", options, tessera::CategoricalHinge())) {}
KLDivergence::KLDivergence(MetricOptions options)
    : MetricHandle(mean_of("KLDivergence", options, tessera::KLDivergence())) {}
Poisson::Poisson(MetricOptions options)
    : MetricHandle(mean_of("Poisson", options, tessera::Poisson())) {}
BinaryCrossentropy::BinaryCrossentropy(BinaryCrossentropyOptions options)
    : MetricHandle(mean_of("BinaryCrossentropy", options,
                           tessera::BinaryCrossentropy({.from_logits = options.from_logits,
                                                        .label_smoothing = options.label_smoothing,
                                                        .name = options.name}))) {}
CategoricalCrossentropy::CategoricalCrossentropy(CategoricalCrossentropyOptions options)
    : MetricHandle(
          mean_of("CategoricalCrossentropy", options,
                  tessera::CategoricalCrossentropy({.from_logits = options.from_logits,
                                                    .label_smoothing = options.label_smoothing,
                                                    .axis = options.axis,
                                                    .name = options.name}))) {}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    SparseCategoricalCrossentropyOptions options)
    : MetricHandle(
          mean_of("SparseCategoricalCrossentropy", options,
                  tessera::SparseCategoricalCrossentropy({.from_logits = options.from_logits,
                                                          .ignore_class = options.ignore_class,
                                                          .axis = options.axis,
                                                          .name = options.name}))) {}

}  // namespace metrics
}  // namespace tessera
