#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/metrics/metrics.hpp>

namespace tessera {
namespace {

template <class Made, class Options>
MetricHandle made(const JsonObject& options) {
  JsonObject given = options;
  given.take_optional<Json>("dtype");
  return Made(options_from<Options>(given));
}

/// Of a class that takes the part `key` first.
template <class Made>
MetricHandle made_at(JsonObject given, const char* key) {
  const auto part = given.take<double>(key);
  given.take_optional<Json>("dtype");
  return Made(part, options_from<AtRateOptions>(given));
}

/// Of those that count classes; their dtype matters.
template <class Made, class Options>
MetricHandle made_of_targets(const JsonObject& options) {
  JsonObject given = options;
  const auto count = given.take<int64_t>("num_classes");
  const auto targets = given.take<std::vector<int64_t>>("target_class_ids");
  return Made(count, targets, options_from<Options>(given));
}
template <class Made, class Options>
MetricHandle made_of_classes(const JsonObject& options) {
  JsonObject given = options;
  const auto count = given.take<int64_t>("num_classes");
  return Made(count, options_from<Options>(given));
}

using MetricFactories = Factories<MetricHandle, JsonObject>;

MetricFactories rates() {
  const auto at = [](auto made_with, const char* key) {
    return [=](const JsonObject& options) { return made_with(options, key); };
  };
  return {
      {"precision_at_recall", at(made_at<PrecisionAtRecall>, "recall")},
      {"recall_at_precision", at(made_at<RecallAtPrecision>, "precision")},
      {"sensitivity_at_specificity", at(made_at<SensitivityAtSpecificity>, "specificity")},
      {"specificity_at_sensitivity", at(made_at<SpecificityAtSensitivity>, "sensitivity")},
  };
}

MetricFactories classes() {
  return {
      {"binary_io_u",
       [](const JsonObject& given) { return BinaryIoU(options_from<BinaryIoUOptions>(given)); }},
      {"io_u", made_of_targets<IoU, IoUOptions>},
      {"mean_io_u", made_of_classes<MeanIoU, IoUOptions>},
      {"one_hot_io_u", made_of_targets<OneHotIoU, OneHotIoUOptions>},
      {"one_hot_mean_io_u", made_of_classes<OneHotMeanIoU, OneHotIoUOptions>},
  };
}

MetricFactories means() {
  return {
      {"accuracy", made<Accuracy, MetricOptions>},
      {"binary_accuracy", made<BinaryAccuracy, BinaryAccuracyOptions>},
      {"categorical_accuracy", made<CategoricalAccuracy, MetricOptions>},
      {"concordance_correlation", made<ConcordanceCorrelation, ConcordanceCorrelationOptions>},
      {"log_cosh_error", made<LogCoshError, LogCoshErrorOptions>},
      {"mean", made<Mean, MetricOptions>},
      {"pearson_correlation", made<PearsonCorrelation, PearsonCorrelationOptions>},
      {"r2_score", made<R2Score, R2ScoreOptions>},
      {"root_mean_squared_error", made<RootMeanSquaredError, MetricOptions>},
      {"sparse_categorical_accuracy", made<SparseCategoricalAccuracy, MetricOptions>},
      {"sparse_top_k_categorical_accuracy",
       made<SparseTopKCategoricalAccuracy, SparseTopKCategoricalAccuracyOptions>},
      {"sum", made<Sum, MetricOptions>},
      {"top_k_categorical_accuracy", made<TopKCategoricalAccuracy, TopKCategoricalAccuracyOptions>},
  };
}

MetricFactories counts() {
  return {
      {"auc", made<AUC, AUCOptions>},
      {"f1_score", made<F1Score, F1ScoreOptions>},
      {"f_beta_score", made<FBetaScore, FBetaScoreOptions>},
      {"false_negatives", made<FalseNegatives, ConfusionCountOptions>},
      {"false_positives", made<FalsePositives, ConfusionCountOptions>},
      {"fbeta_score", made<FBetaScore, FBetaScoreOptions>},
      {"precision", made<Precision, PrecisionRecallOptions>},
      {"recall", made<Recall, PrecisionRecallOptions>},
      {"true_negatives", made<TrueNegatives, ConfusionCountOptions>},
      {"true_positives", made<TruePositives, ConfusionCountOptions>},
  };
}

}  // namespace

namespace metrics {
namespace {

MetricFactories losses() {
  return {
      {"bce", made<BinaryCrossentropy, BinaryCrossentropyOptions>},
      {"binary_crossentropy", made<BinaryCrossentropy, BinaryCrossentropyOptions>},
      {"categorical_crossentropy", made<CategoricalCrossentropy, CategoricalCrossentropyOptions>},
      {"categorical_hinge", made<CategoricalHinge, MetricOptions>},
      {"cosine_similarity", made<CosineSimilarity, CosineSimilarityOptions>},
      {"hinge", made<Hinge, MetricOptions>},
      {"kl_divergence", made<KLDivergence, MetricOptions>},
      {"mae", made<MeanAbsoluteError, MetricOptions>},
      {"mape", made<MeanAbsolutePercentageError, MetricOptions>},
      {"mean_absolute_error", made<MeanAbsoluteError, MetricOptions>},
      {"mean_absolute_percentage_error", made<MeanAbsolutePercentageError, MetricOptions>},
      {"mean_squared_error", made<MeanSquaredError, MetricOptions>},
      {"mean_squared_logarithmic_error", made<MeanSquaredLogarithmicError, MetricOptions>},
      {"mse", made<MeanSquaredError, MetricOptions>},
      {"msle", made<MeanSquaredLogarithmicError, MetricOptions>},
      {"poisson", made<Poisson, MetricOptions>},
      {"sparse_categorical_crossentropy",
       made<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions>},
      {"squared_hinge", made<SquaredHinge, MetricOptions>},
  };
}

}  // namespace
}  // namespace metrics

namespace {

const MetricFactories& factories() {
  static const MetricFactories all = [] {
    MetricFactories joined = means();
    joined.merge(counts());
    joined.merge(rates());
    joined.merge(classes());
    joined.merge(metrics::losses());
    return joined;
  }();
  return all;
}

}  // namespace

std::shared_ptr<Metric> make_metric(const std::string& kind, const JsonObject& options) {
  return make_by_name("metric", factories(), kind, options).get();
}

std::shared_ptr<Metric> make_metric(const std::string& kind, const std::string& name) {
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

std::vector<std::string> metric_names() { return names_in(factories()); }

}  // namespace tessera
