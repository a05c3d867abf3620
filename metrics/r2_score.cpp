#include <tessera/metrics/r2_score.hpp>

#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
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
void fields(R2ScoreOptions& o, const Visit& visit) {
  visit("class_aggregation", o.class_aggregation);
  visit("num_regressors", o.num_regressors);
  visit("name", o.name);
}

namespace {

const Registered registered_r2_score(metric_factories(), {"r2_score"},
                                     metric_of<R2Score, R2ScoreOptions>);

/// The R² score. Totals: sums of labels, of their squares, of squared errors and of weights for
/// each output, then the number of labels.
class R2Metric : public Metric {
 public:
  using Metric::result;
  using Metric::result_values;
  explicit R2Metric(const R2ScoreOptions& options) : Metric(options.name), options_(options) {
    if (options.num_regressors >= 0) return;
    throw ConfigError(name(), "num_regressors is at least 0", str(options.num_regressors),
                      "leave it out for the plain score");
  }
  std::string class_name() const override { return "R2Score"; }
  Json config() const override {
    Json config = config_of(options_);
    if (options_.class_aggregation == ClassAggregation::none) config["class_aggregation"] = nullptr;
    return config;
  }
  bool can_be_replayed() const override { return true; }

  void update(const DTensor& y_true, const DTensor& y_pred, const DTensor& sample_weight) override {
    const NoRecording no_tape;
    const auto [labels, predictions] =
        match_ranks(ops::cast(y_true, at::kDouble), ops::cast(y_pred, at::kDouble));
    check(labels.shape(), predictions.shape());
    // Sharded as the predictions are, so that all sums are, too.
    DTensor weights = filled(labels.shape(), 1, at::kDouble, predictions.layout().resolved());
    if (sample_weight.defined()) {
      const DTensor weight = ops::cast(sample_weight, at::kDouble);
      weights = weights * checked_weights(name(), labels.shape(), weight);
    }
    const auto sum = [&](const DTensor& x) { return ops::sum(x * weights, {0}); };
    outputs_ = labels.size(1);
    add(ops::concat({sum(labels), sum(ops::square(labels)), sum(ops::square(labels - predictions)),
                     ops::sum(weights, {0})}),
        {static_cast<double>(labels.numel())});
  }

  void check_totals(size_t count) const override {
    check_count(count % 4 == 1 && (outputs_ == 0 || std::cmp_equal(count, 4 * outputs_ + 1)),
                outputs_ == 0 ? "4 for each output, and 1" : str(4 * outputs_ + 1), count);
  }

  std::vector<double> result_values(const std::vector<double>& totals) const override {
    if (totals.empty()) return {0};
    const size_t outputs = totals.size() / 4;
    std::vector<double> scores;
    double weighted = 0, all = 0;
    for (size_t i = 0; i < outputs; ++i) {
      const double sum = totals[i], count = totals[3 * outputs + i];
      const double deviation = totals[outputs + i] - sum * (sum / count);
      const double score = 1 - totals[2 * outputs + i] / deviation;
      scores.push_back(std::isinf(score) ? 0 : score);
      weighted += deviation * scores.back();
      all += deviation;
    }
    if (options_.class_aggregation == ClassAggregation::uniform_average) scores = {mean(scores)};
    if (options_.class_aggregation == ClassAggregation::variance_weighted_average) {
      scores = {weighted / all};
    }
    for (double& score : scores) score = adjusted(score, totals.back());
    return scores;
  }

  double result(const std::vector<double>& totals) const override {
    return mean(result_values(totals));
  }

 private:
  static double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }

  double adjusted(double score, double samples) const {
    const auto regressors = static_cast<double>(options_.num_regressors);
    if (regressors == 0 || regressors >= samples - 1) return score;
    return 1 - (1 - score) * (samples - 1) / (samples - regressors - 1);
  }

  void check(const Shape& labels, const Shape& predictions) const {
    if (predictions.size() != 2 || labels != predictions) {
      throw ShapeError(name(), "labels and predictions have one shape (batch, outputs)",
                       to_string(labels) + " and " + to_string(predictions),
                       "give a number for each output");
    }
    const auto outputs = outputs_ != 0 ? outputs_ : static_cast<int64_t>(known_totals() / 4);
    if (outputs == 0 || outputs == predictions[1]) return;
    throw ShapeError(name(), str("every batch has ", outputs, " outputs"), to_string(predictions),
                     "use a new metric for other outputs");
  }

  R2ScoreOptions options_;
  int64_t outputs_ = 0;  ///< 0: not known yet
};

}  // namespace

R2Score::R2Score(R2ScoreOptions options) : MetricHandle(std::make_shared<R2Metric>(options)) {}

}  // namespace tessera
