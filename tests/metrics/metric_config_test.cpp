// Names, configurations, invalid options and invalid shapes of all metrics.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/metrics.hpp>

#include <ATen/ATen.h>

#include <algorithm>

#include "tests/support/catch.hpp"

namespace metric_config_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace {

const std::vector<std::pair<const char*, const char*>> classes = {
    {"Accuracy", "accuracy"},
    {"AUC", "auc"},
    {"BinaryAccuracy", "binary_accuracy"},
    {"BinaryCrossentropy", "binary_crossentropy"},
    {"BinaryIoU", "binary_io_u"},
    {"CategoricalAccuracy", "categorical_accuracy"},
    {"CategoricalCrossentropy", "categorical_crossentropy"},
    {"CategoricalHinge", "categorical_hinge"},
    {"ConcordanceCorrelation", "concordance_correlation"},
    {"CosineSimilarity", "cosine_similarity"},
    {"F1Score", "f1_score"},
    {"FalseNegatives", "false_negatives"},
    {"FalsePositives", "false_positives"},
    {"FBetaScore", "fbeta_score"},
    {"Hinge", "hinge"},
    {"KLDivergence", "kl_divergence"},
    {"LogCoshError", "logcosh"},
    {"Mean", "mean"},
    {"MeanAbsoluteError", "mean_absolute_error"},
    {"MeanAbsolutePercentageError", "mean_absolute_percentage_error"},
    {"MeanSquaredError", "mean_squared_error"},
    {"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error"},
    {"PearsonCorrelation", "pearson_correlation"},
    {"Poisson", "poisson"},
    {"Precision", "precision"},
    {"R2Score", "r2_score"},
    {"Recall", "recall"},
    {"RootMeanSquaredError", "root_mean_squared_error"},
    {"SparseCategoricalAccuracy", "sparse_categorical_accuracy"},
    {"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"},
    {"SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy"},
    {"SquaredHinge", "squared_hinge"},
    {"Sum", "sum"},
    {"TopKCategoricalAccuracy", "top_k_categorical_accuracy"},
    {"TrueNegatives", "true_negatives"},
    {"TruePositives", "true_positives"}};

std::shared_ptr<Metric> from(const std::string& json) {
  return metric_from_config(parse_json(json, "test"));
}

DTensor value(const Shape& shape) {
  static const Mesh mesh = create_mesh({{"batch", 2}});
  return filled(shape, 0.5, at::kFloat, Layout::replicated(mesh, int64_t(shape.size())));
}

}  // namespace

TEST_CASE("restored totals of another size are refused, by the metric's name") {
  const auto refused = [](const MetricHandle& metric, size_t count) {
    try {
      metric.get()->restore(std::vector<double>(count, 1));
    } catch (const ConfigError& error) {
      const std::string name = "[" + metric.get()->name() + "]";
      CHECK_THAT(error.what(), Contains(name + " restored totals must fit the metric") &&
                                   Contains(str("Received: ", count, ".")));
      return true;
    }
    return false;
  };
  struct Case {
    MetricHandle metric;
    std::vector<size_t> good, bad;
  };
  const std::vector<Case> cases = {{MeanIoU(3), {0, 12}, {1, 9, 16}},
                                   {BinaryIoU(), {0, 6}, {4, 9}},
                                   {Mean(), {0, 2}, {1, 3, 9}},
                                   {Sum(), {0, 1}, {2}},
                                   {RootMeanSquaredError(), {2}, {1, 9}},
                                   {Precision(), {4}, {2, 8}},
                                   {AUC({.num_thresholds = 5}), {0}, {2, 5, 400}},
                                   {F1Score(), {0, 3, 9}, {2, 10}},
                                   {R2Score(), {0, 5, 9}, {4, 8}}};
  for (const Case& one : cases) {
    CAPTURE(one.metric.get()->name());
    for (const size_t count : one.good) CHECK_FALSE(refused(one.metric, count));
    for (const size_t count : one.bad) CHECK(refused(one.metric, count));
  }
  // A metric that learns its size from the batches.
  const F1Score score;
  score.get()->restore(std::vector<double>(9, 1));
  const DTensor four = ones({2, 4});
  CHECK_THROWS_WITH(score.get()->update(four, four), Contains("every batch has 3 classes"));
  const R2Score r2;
  r2.get()->restore(std::vector<double>(9, 1));
  CHECK_THROWS_WITH(r2.get()->update(four, four), Contains("every batch has 2 outputs"));
}

TEST_CASE("metrics are known by Keras' names, class names and short names") {
  for (const auto& [class_name, name] : classes) {
    const std::shared_ptr<Metric> metric =
        metric_from_config({{"class_name", class_name}, {"config", Json::object()}});
    CHECK(metric->class_name() == class_name);
    CHECK(metric->name() == name);
    CHECK(metric->can_be_replayed());
    CHECK(make_metric(class_name, "mine")->name() == "mine");
    if (name != std::string("logcosh")) {
      CHECK(make_metric(name, "mine")->class_name() == class_name);
    }
  }
  CHECK(make_metric("mse", "m")->class_name() == "MeanSquaredError");
  CHECK(make_metric("MAE", "m")->class_name() == "MeanAbsoluteError");
  CHECK(make_metric("mape", "m")->class_name() == "MeanAbsolutePercentageError");
  CHECK(make_metric("msle", "m")->class_name() == "MeanSquaredLogarithmicError");
  CHECK(make_metric("bce", "m")->class_name() == "BinaryCrossentropy");
  CHECK(make_metric("f_beta_score", "m")->class_name() == "FBetaScore");
  CHECK_THROWS_WITH(make_metric("acuracy", "a"), Contains("\"accuracy\""));
  CHECK(MetricHandle("accuracy").text() == "accuracy");
  CHECK(metrics::Accuracy({.name = "acc"}).get()->name() == "acc");
  CHECK(metrics::MeanSquaredError({.name = "error"}).get()->name() == "error");
  CHECK(metrics::AUC({.curve = AUCCurve::pr}).get()->config().at("curve") == "PR");
}

TEST_CASE("metric_names() lists all metrics, sorted") {
  const std::vector<std::string> names = metric_names();
  const std::vector<std::string> with_arguments = {"io_u",
                                                   "mean_io_u",
                                                   "one_hot_io_u",
                                                   "one_hot_mean_io_u",
                                                   "precision_at_recall",
                                                   "recall_at_precision",
                                                   "sensitivity_at_specificity",
                                                   "specificity_at_sensitivity"};
  const auto known = [&](const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const auto& [class_name, name] : classes) {
    CHECK((known(name) || name == std::string("logcosh")));
  }
  for (const std::string& name : with_arguments) CHECK(known(name));
  for (const std::string& name : names) {
    const bool alone =
        std::find(with_arguments.begin(), with_arguments.end(), name) == with_arguments.end();
    if (!alone) continue;
    const std::shared_ptr<Metric> metric = make_metric(name, name);
    CHECK(metric->name() == name);
    CHECK(serialized(metric_from_config(serialized(metric))) == serialized(metric));
  }
}

TEST_CASE("every metric is rebuilt from its configuration") {
  const Json changes = {{"name", "mine"},
                        {"threshold", 0.25},
                        {"thresholds", {0.25, 0.75}},
                        {"k", 3},
                        {"from_sorted_ids", true},
                        {"from_logits", true},
                        {"label_smoothing", 0.25},
                        {"ignore_class", 1},
                        {"axis", 1},
                        {"top_k", 2},
                        {"class_id", 1},
                        {"num_thresholds", 4},
                        {"curve", "PR"},
                        {"summation_method", "majoring"},
                        {"multi_label", true},
                        {"num_labels", 2},
                        {"label_weights", {1, 3}},
                        {"average", "macro"},
                        {"beta", 2},
                        {"target_class_ids", {1}},
                        {"dtype", "float32"},
                        {"class_aggregation", "variance_weighted_average"},
                        {"num_regressors", 3}};
  for (const auto& [class_name, name] : classes) {
    const Json plain =
        serialized(metric_from_config({{"class_name", class_name}, {"config", Json::object()}}));
    CHECK(serialized(metric_from_config(plain)) == plain);
    Json config = plain.at("config");
    for (const auto& option : plain.at("config").items()) {
      config[option.key()] = changes.at(option.key());
    }
    CHECK(metric_from_config({{"class_name", class_name}, {"config", config}})->config() == config);
  }
  CHECK(BinaryAccuracy().get()->config() ==
        Json({{"name", "binary_accuracy"}, {"threshold", 0.5}}));
  CHECK(Precision().get()->config() == Json({{"thresholds", nullptr},
                                             {"top_k", nullptr},
                                             {"class_id", nullptr},
                                             {"name", "precision"}}));
}

TEST_CASE("Keras' serialization of a metric is read") {
  const auto auc = from(R"({"module": "keras.metrics", "class_name": "AUC", "config":
      {"name": "area", "dtype": "float32", "num_thresholds": 20, "curve": "pr",
       "summation_method": "minoring", "multi_label": false, "num_labels": null,
       "label_weights": null, "thresholds": null}, "registered_name": null})");
  CHECK(auc->config().at("curve") == "PR");
  CHECK(auc->name() == "area");
  CHECK(from(R"("mae")")->class_name() == "MeanAbsoluteError");
  CHECK(from(R"({"class_name": "Precision", "config": {"thresholds": 0.5}})")
            ->config()
            .at("thresholds") == Json({0.5}));
}

TEST_CASE("invalid options of a metric are named") {
  CHECK_THROWS_AS(BinaryAccuracy({.threshold = 1}), ConfigError);
  CHECK_THROWS_WITH(TopKCategoricalAccuracy({.k = 0}), Contains("top_k_categorical_accuracy"));
  CHECK_THROWS_AS(SparseTopKCategoricalAccuracy({.k = -1}), ConfigError);
  CHECK_THROWS_WITH(Precision({.thresholds = {0.5, 1.5}}),
                    Contains("[precision] thresholds") && Contains("1.5"));
  CHECK_THROWS_AS(TruePositives({.thresholds = {-0.5}}), ConfigError);
  CHECK_THROWS_AS(Recall({.top_k = 0}), ConfigError);
  CHECK_THROWS_AS(Recall({.class_id = -1}), ConfigError);
  CHECK_THROWS_WITH(AUC({.num_thresholds = 1}), Contains("[auc] num_thresholds"));
  CHECK_THROWS_AS(AUC({.thresholds = {2}}), ConfigError);
  CHECK_THROWS_WITH(AUC({.num_labels = 2}), Contains("multi_label"));
  CHECK_THROWS_AS(FBetaScore({.beta = 0}), ConfigError);
  CHECK_THROWS_AS(F1Score({.threshold = 1.5}), ConfigError);
  CHECK_THROWS_AS(metrics::BinaryCrossentropy({.label_smoothing = 2}), ConfigError);
  CHECK_THROWS_WITH(from(R"({"class_name": "AUC", "config": {"curve": "RO"}})"),
                    Contains("[metric: config.curve]") && Contains("write \"ROC\""));
  CHECK_THROWS_WITH(from(R"({"class_name": "AUC", "config": {"num_threshold": 5}})"),
                    Contains("write \"num_thresholds\""));
  CHECK_THROWS_WITH(from(R"({"class_name": "F1Score", "config": {"average": "mean"}})"),
                    Contains("config.average"));
}

TEST_CASE("metrics with their own arguments are made from Keras' configurations") {
  const auto made = [](const std::string& name, const Json& config) {
    return metric_from_config({{"class_name", name}, {"config", config}});
  };
  const std::vector<std::pair<std::string, Json>> configs = {
      {"SensitivityAtSpecificity",
       {{"class_id", 1}, {"num_thresholds", 7}, {"name", "s"}, {"specificity", 0.25}}},
      {"RecallAtPrecision",
       {{"class_id", nullptr}, {"num_thresholds", 200}, {"name", "r"}, {"precision", 0.5}}},
      {"IoU",
       {{"name", "i"},
        {"dtype", "float32"},
        {"ignore_class", 3},
        {"sparse_y_true", false},
        {"sparse_y_pred", true},
        {"axis", 1},
        {"num_classes", 4},
        {"target_class_ids", {0, 2}}}},
      {"OneHotMeanIoU",
       {{"name", "o"},
        {"dtype", "int"},
        {"ignore_class", nullptr},
        {"sparse_y_pred", false},
        {"axis", -1},
        {"num_classes", 2}}},
      {"BinaryIoU",
       {{"target_class_ids", {1}}, {"threshold", 0.25}, {"name", "b"}, {"dtype", "int"}}},
      {"R2Score", {{"class_aggregation", nullptr}, {"num_regressors", 2}, {"name", "r"}}},
      {"PearsonCorrelation", {{"name", "p"}, {"axis", 1}}}};
  for (const auto& [name, config] : configs) {
    CHECK(made(name, config)->class_name() == name);
    CHECK(made(name, config)->config() == config);
  }
  CHECK(made("MeanIoU", {{"num_classes", 3}})->name() == "mean_io_u");
  CHECK(made("BinaryIoU", Json::object())->name() == "binary_io_u");
  CHECK(made("PrecisionAtRecall", {{"recall", 0.5}})->name() == "precision_at_recall");
  CHECK(SpecificityAtSensitivity(0.5).get()->name() == "specificity_at_sensitivity");
  CHECK_THROWS_WITH(made("MeanIoU", Json::object()), Contains("num_classes"));
  CHECK_THROWS_WITH(made("PrecisionAtRecall", Json::object()), Contains("recall"));
  CHECK_THROWS_WITH(made("R2Score", {{"class_aggregation", "uniform_averge"}}),
                    Contains("write \"uniform_average\""));
  CHECK_THROWS_WITH(PrecisionAtRecall(1.5), Contains("[PrecisionAtRecall] recall lies in [0, 1]"));
  CHECK_THROWS_WITH(RecallAtPrecision(0.5, {.num_thresholds = 0}), Contains("num_thresholds"));
  CHECK_THROWS_WITH(IoU(2, {0, 2}), Contains("[io_u] target_class_ids") && Contains("2"));
  CHECK_THROWS_WITH(MeanIoU(0), Contains("num_classes"));
  CHECK_THROWS_WITH(R2Score({.num_regressors = -1}), Contains("num_regressors"));
}

TEST_CASE("invalid shapes are named by the metric") {
  const auto update = [](const MetricHandle& metric, const Shape& y_true, const Shape& y_pred,
                         const Shape& weight = {}) {
    metric.get()->update(value(y_true), value(y_pred), weight.empty() ? DTensor() : value(weight));
    return metric.get()->result();
  };
  CHECK_THROWS_AS(update(SparseCategoricalAccuracy(), {3}, {5, 5}), ShapeError);
  CHECK_THROWS_AS(update(SparseCategoricalAccuracy(), {5}, {5, 5}, {2}), ShapeError);
  CHECK_THROWS_WITH(update(AUC(), {4}, {4, 3}), Contains("[auc]") && Contains("(4, 3)"));
  CHECK_THROWS_WITH(update(AUC(), {4}, {4}, {3}), Contains("sample weights"));
  CHECK_THROWS_WITH(update(AUC({.multi_label = true}), {4}, {4}), Contains("multi_label"));
  CHECK_THROWS_WITH(update(AUC({.multi_label = true, .num_labels = 3}), {4, 2}, {4, 2}),
                    Contains("3 labels"));
  CHECK_THROWS_WITH(update(AUC({.label_weights = {1, 2}}), {4, 3}, {4, 3}),
                    Contains("label_weights"));
  CHECK_THROWS_WITH(update(Precision({.top_k = 4}), {4, 3}, {4, 3}), Contains("top_k"));
  CHECK_THROWS_WITH(update(Recall({.class_id = 3}), {4, 3}, {4, 3}), Contains("class_id"));
  CHECK_THROWS_WITH(update(F1Score(), {4}, {4}), Contains("[f1_score]") && Contains("(4,)"));
  CHECK_THROWS_WITH(update(SparseTopKCategoricalAccuracy(), {3}, {4, 3}),
                    Contains("[sparse_top_k_categorical_accuracy]"));
  CHECK_THROWS_WITH(update(metrics::MeanAbsoluteError(), {4, 2}, {4, 3}),
                    Contains("[mean_absolute_error]"));
  CHECK_THROWS_WITH(update(MeanIoU(2), {4}, {3}), Contains("[mean_io_u] as many labels"));
  CHECK_THROWS_WITH(update(MeanIoU(2), {4}, {4}, {3}), Contains("sample weights"));
  CHECK_THROWS_WITH(update(R2Score(), {4}, {4}), Contains("[r2_score]"));
  CHECK_THROWS_WITH(update(R2Score(), {4, 2}, {4, 2}, {3}), Contains("sample weights"));
  CHECK_THROWS_WITH(update(PearsonCorrelation(), {4, 3}, {4, 2}), Contains("PearsonCorrelation"));
  const F1Score score;
  update(score, {4, 3}, {4, 3});
  CHECK_THROWS_WITH(update(score, {4, 2}, {4, 2}), Contains("3 classes"));
  const AUC area({.multi_label = true});
  update(area, {4, 3}, {4, 3});
  CHECK_THROWS_WITH(update(area, {4, 2}, {4, 2}), Contains("3 labels"));
}

}  // namespace metric_config_test
