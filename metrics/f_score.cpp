#include <tessera/metrics/f_score.hpp>

#include <numeric>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(FBetaScoreOptions& o, const Visit& visit) {
  visit("average", o.average);
  visit("beta", o.beta);
  visit("threshold", o.threshold);
  visit("name", o.name);
}

template <class Visit>
void fields(F1ScoreOptions& o, const Visit& visit) {
  visit("average", o.average);
  visit("threshold", o.threshold);
  visit("name", o.name);
}

namespace {

const Registered registered_f_beta_score(metric_factories(), {"fbeta_score", "f_beta_score"},
                                         metric_of<FBetaScore, FBetaScoreOptions>);
const Registered registered_f1_score(metric_factories(), {"f1_score"},
                                     metric_of<F1Score, F1ScoreOptions>);

/// Sums of one class, or of all classes together.
struct Sums {
  double hits = 0;       ///< positive predictions of positive labels
  double predicted = 0;  ///< positive predictions
  double labelled = 0;   ///< positive labels
};

/// The F-beta score. Totals: hits of each class, then predicted, then labelled.
class FBetaMetric : public Metric {
 public:
  using Metric::result;
  using Metric::result_values;
  FBetaMetric(const char* class_name, Json config, const FBetaScoreOptions& options)
      : Metric(config.at("name").get<std::string>()),
        class_name_(class_name),
        config_(std::move(config)),
        options_(options) {
    if (!(options.beta > 0)) {
      throw ConfigError(name(), "beta is positive", str(options.beta), "use 1 for the F1 score");
    }
    if (options.threshold && !(*options.threshold > 0 && *options.threshold <= 1)) {
      throw ConfigError(name(), "threshold lies in (0, 1]", str(*options.threshold),
                        "leave it out for the largest prediction");
    }
  }
  std::string class_name() const override { return class_name_; }
  Json config() const override { return config_; }
  bool can_be_replayed() const override { return true; }

  void update(const DTensor& y_true, const DTensor& y_pred, const DTensor& sample_weight) override {
    const NoRecording no_tape;
    check(y_true.shape(), y_pred.shape());
    const DTensor labels = ops::cast(y_true, at::kDouble);
    const DTensor predicted = ops::cast(positive(ops::cast(y_pred, at::kFloat)), at::kDouble);
    DTensor weights;
    if (sample_weight.defined()) {
      weights = checked_weights(name(), y_pred.shape(), ops::cast(sample_weight, at::kDouble));
    }
    const auto sum = [&](const DTensor& x) {
      return ops::sum(weights.defined() ? x * weights : x, {0});
    };
    add(ops::concat({sum(predicted * labels), sum(predicted), sum(labels)}));
    classes_ = y_pred.size(1);
  }

  void check_totals(size_t count) const override {
    check_count(count % 3 == 0 && (classes_ == 0 || std::cmp_equal(count, 3 * classes_)),
                classes_ == 0 ? "3 for each class" : str(3 * classes_), count);
  }

  std::vector<double> result_values(const std::vector<double>& totals) const override {
    if (totals.empty()) return {0};
    std::vector<double> values;
    for (const Sums& sums : by_class(totals)) values.push_back(score(sums));
    return values;
  }

  double result(const std::vector<double>& totals) const override {
    const std::vector<double> values = result_values(totals);
    if (totals.empty() || options_.average != ScoreAverage::weighted) {
      return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
    }
    const std::vector<Sums> sums = by_class(totals);
    double all = keras_epsilon, weighted = 0;
    for (const Sums& of_class : sums) all += of_class.labelled;
    for (size_t c = 0; c < sums.size(); ++c) weighted += values[c] * sums[c].labelled / all;
    return weighted;
  }

 private:
  void check(const Shape& labels, const Shape& predictions) const {
    if (predictions.size() != 2 || labels != predictions) {
      throw ShapeError(name(), "labels and predictions have one shape (batch, classes)",
                       to_string(labels) + " and " + to_string(predictions),
                       "give one-hot labels and one score a class");
    }
    const auto classes = classes_ != 0 ? classes_ : static_cast<int64_t>(known_totals() / 3);
    if (classes == 0 || classes == predictions[1]) return;
    throw ShapeError(name(), str("every batch has ", classes, " classes"), to_string(predictions),
                     "use a new metric for other classes");
  }

  DTensor positive(const DTensor& y_pred) const {
    const auto number = [&](double value) { return scalar(value, y_pred.mesh(), y_pred.dtype()); };
    if (options_.threshold) return ops::greater(y_pred, number(*options_.threshold));
    const DTensor largest = ops::max(y_pred, {-1}, /*keepdims=*/true);
    // As in Keras: if all predictions are 0, none is positive.
    return ops::logical_and(ops::greater_equal(y_pred, largest),
                            ops::greater(ops::abs(y_pred), number(1e-9)));
  }

  /// Returns the sums of each class, or with micro those of all classes together.
  std::vector<Sums> by_class(const std::vector<double>& totals) const {
    const size_t classes = totals.size() / 3;
    std::vector<Sums> all(options_.average == ScoreAverage::micro ? 1 : classes);
    for (size_t c = 0; c < classes; ++c) {
      Sums& sums = all[all.size() == 1 ? 0 : c];
      sums.hits += totals[c];
      sums.predicted += totals[classes + c];
      sums.labelled += totals[2 * classes + c];
    }
    return all;
  }

  double score(const Sums& sums) const {
    const double precision = sums.hits / (sums.predicted + keras_epsilon);
    const double recall = sums.hits / (sums.labelled + keras_epsilon);
    const double squared = options_.beta * options_.beta;
    return (1 + squared) * precision * recall / (squared * precision + recall + keras_epsilon);
  }

  const char* class_name_;
  Json config_;
  FBetaScoreOptions options_;
  int64_t classes_ = 0;  ///< 0: not known yet
};

}  // namespace

FBetaScore::FBetaScore(FBetaScoreOptions options)
    : MetricHandle(std::make_shared<FBetaMetric>("FBetaScore", named_config("FBetaScore", options),
                                                 options)) {}
F1Score::F1Score(F1ScoreOptions options)
    : MetricHandle(std::make_shared<FBetaMetric>(
          "F1Score", named_config("F1Score", options),
          FBetaScoreOptions{
              .average = options.average, .threshold = options.threshold, .name = options.name})) {}

}  // namespace tessera
