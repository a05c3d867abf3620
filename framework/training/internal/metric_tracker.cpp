#include <tessera/framework/training/internal/metric_tracker.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/internal/stacked_sums.hpp>
#include <tessera/framework/training/internal/first_step.hpp>

namespace tessera::detail {
namespace {

/// The losses and metrics that compile() names for each output, before shapes are known.
struct CompileChoices {
  CompileChoices(const CompileOptions& options, const std::vector<std::string>& names)
      : losses(options.loss.values("loss", names, {})),
        weights(options.loss_weights.values("loss_weights", names, 1)),
        metrics(options.metrics.values("metrics", names)),
        weighted_metrics(options.weighted_metrics.values("weighted_metrics", names)) {}

  std::vector<LossChoice> losses;
  std::vector<double> weights;
  std::vector<std::vector<MetricHandle>> metrics;
  std::vector<std::vector<MetricHandle>> weighted_metrics;

  bool needs_labels() const {
    const auto any = [](const auto& lists) {
      return std::any_of(lists.begin(), lists.end(), [](const auto& l) { return !l.empty(); });
    };
    return loss_count() > 0 || any(metrics) || any(weighted_metrics);
  }
  int64_t loss_count() const {
    return std::count_if(losses.begin(), losses.end(),
                         [](const LossChoice& loss) { return static_cast<bool>(loss); });
  }
};

std::vector<std::shared_ptr<Metric>> metrics_for(const std::vector<MetricHandle>& metrics,
                                                 const Shape& y_true, const Shape& y_pred) {
  std::vector<std::shared_ptr<Metric>> list;
  for (const MetricHandle& metric : metrics) list.push_back(metric_for(metric, y_true, y_pred));
  return list;
}

void check_totals(const Json& totals) {
  const auto number = [](const Json& value) { return value.is_number(); };
  const auto numbers = [&](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), number);
  };
  const auto metric = [&](const Json& value) {
    return value.is_object() && value.contains("totals") && numbers(value["totals"]) &&
           value.contains("value") && number(value["value"]) &&
           (!value.contains("known") || numbers(value["known"]));
  };
  const bool fits = totals.is_object() && totals.contains("loss") && numbers(totals["loss"]) &&
                    totals["loss"].size() == 2 && totals.contains("metrics") &&
                    totals["metrics"].is_object() &&
                    std::all_of(totals["metrics"].begin(), totals["metrics"].end(), metric);
  if (fits) return;
  throw ConfigError("restore_metric_totals", "totals are a result of metric_totals()",
                    totals.dump(), "pass those of a checkpoint");
}

std::vector<std::shared_ptr<Metric>> all_metrics(const CompiledOutput& output) {
  std::vector<std::shared_ptr<Metric>> all = output.metrics;
  all.insert(all.end(), output.weighted_metrics.begin(), output.weighted_metrics.end());
  return all;
}

StepTotals::MetricTotals& sum_of(std::vector<StepTotals::MetricTotals>& sums,
                                 const std::string& name) {
  const auto found =
      std::find_if(sums.begin(), sums.end(),
                   [&](const StepTotals::MetricTotals& entry) { return entry.name == name; });
  if (found != sums.end()) return *found;
  return sums.emplace_back(StepTotals::MetricTotals{.name = name, .totals = {}});
}

void add_all(std::vector<double>& sum, const std::vector<double>& values) {
  sum.resize(std::max(sum.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
}

}  // namespace

void check_one_number(const DTensor& value, const std::string& name) {
  if (value.defined() && value.numel() == 1) return;
  throw ShapeError(name, str("a step's ", name == "loss" ? "loss" : "value", " is one number"),
                   value.defined() ? to_string(value.shape()) : "an empty DTensor",
                   "reduce it: sum_over_batch_size or sum");
}

void LossMean::add_loss(const DTensor& loss, int64_t rows) {
  const NoRecording no_recording;
  const auto count = static_cast<double>(rows);
  add(ops::reshape(ops::scale(ops::cast(loss, at::kDouble), count), {1}), {count});
}

double LossMean::result(const std::vector<double>& totals) const {
  return totals.size() < 2 || totals[1] == 0 ? 0 : totals[0] / totals[1];
}

void MetricTracker::check_names(const CompileOptions& options,
                                const std::vector<std::string>& outputs) {
  CompileChoices(options, outputs);
}

void MetricTracker::choose(std::vector<std::string> names, const Batch& batch,
                           const std::vector<DTensor>& y_pred) {
  if (outputs_.empty()) {
    if (names.size() != y_pred.size()) {
      names.clear();
      for (size_t i = 0; i < y_pred.size(); ++i) names.push_back(str("output_", i + 1));
    }
    const CompileChoices choices(options_, names);
    if (!choices.needs_labels()) return restore_metrics();
    if (batch.y.empty()) {
      throw ConfigError("fit", "the dataset has labels", "inputs only", "give it y");
    }
    // Assigned to outputs_ when all are made, so that an error leaves none behind.
    std::vector<CompiledOutput> all(batch.y.size() == names.size() ? names.size() : 0);
    for (size_t i = 0; i < all.size(); ++i) {
      const Shape& labels = batch.y[i].shape();
      const Shape& shape = y_pred[i].shape();
      CompiledOutput& output = all[i];
      output.loss = choices.losses[i].loss(labels, shape);
      output.weight = choices.weights[i];
      if (choices.loss_count() > 1 && output.loss) {
        output.mean = std::make_shared<LossMean>(names[i] + "_loss");
      }
      output.metrics = metrics_for(choices.metrics[i], labels, shape);
      output.weighted_metrics = metrics_for(choices.weighted_metrics[i], labels, shape);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].loss) continue;
      const std::string of = all.size() == 1 ? "" : " of output " + names[i];
      warn_of_metrics_of_logits(model_, of, *all[i].loss, all_metrics(all[i]));
    }
    outputs_ = std::move(all);
    name_metrics(names);
    restore_metrics();
  }
  if (batch.y.size() == y_pred.size()) return;
  throw ConfigError("fit", str("there are labels for each of the ", y_pred.size(), " outputs"),
                    str(batch.y.size(), " labels"), "give one y for each output");
}

/// Names metrics as Keras does: prefixed by the output if there are several, and numbered if taken.
void MetricTracker::name_metrics(const std::vector<std::string>& names) {
  metrics_.clear();
  std::map<std::string, int64_t> uses;
  const auto add = [&](const std::string& name, const std::string& other,
                       const std::shared_ptr<Metric>& metric) {
    std::string unique_name = uses.count(name) ? other : name;
    const int64_t number = uses[unique_name]++;
    if (number > 0) unique_name += str("_", number);
    metrics_.emplace_back(unique_name, metric);
  };
  const auto prefix = [&](size_t i) { return outputs_.size() > 1 ? names[i] + "_" : ""; };
  for (const CompiledOutput& output : outputs_) {
    if (output.mean) metrics_.emplace_back(output.mean->name(), output.mean);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    for (const auto& m : outputs_[i].metrics) add(prefix(i) + m->name(), prefix(i) + m->name(), m);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    for (const auto& m : outputs_[i].weighted_metrics) {
      add(prefix(i) + m->name(), prefix(i) + "weighted_" + m->name(), m);
    }
  }
}

bool MetricTracker::reads_predictions(size_t output) const {
  if (outputs_.empty()) return true;
  return !outputs_[output].metrics.empty() || !outputs_[output].weighted_metrics.empty();
}

bool MetricTracker::reads_predictions() const {
  bool any = outputs_.empty();
  for (size_t i = 0; i < outputs_.size(); ++i) any = any || reads_predictions(i);
  return any;
}

NamedMetrics MetricTracker::metrics() const {
  NamedMetrics all = metrics_;
  for (const StepMean& step : step_means_) {
    if (step.mean->has_loss()) all.emplace_back(step.name, step.mean);
  }
  for (auto& of_layer : layer_metrics(model_)) all.push_back(std::move(of_layer));
  return all;
}

void MetricTracker::reset() {
  loss_ = RowMean();
  forget_restored();
  restored_means_ = {};
  for (const auto& [name, metric] : metrics()) metric->reset();
  if (sums_) sums_->clear();
  sums_log_loss_ = true;
}

bool MetricTracker::logs_loss() const {
  if (sums_) return sums_log_loss_;
  return std::none_of(step_means_.begin(), step_means_.end(), [](const StepMean& step) {
    return step.stands_for_loss && step.mean->has_loss();
  });
}

DTensor MetricTracker::take(const StepValues& values, int64_t rows) {
  bool first = true;
  for (const auto& [name, value] : values.all()) {
    check_one_number(value, name);
    if (name == "loss") continue;
    mean_of(name, first && !values.has_loss()).add_loss(value, rows);
    first = false;
  }
  return values.loss();
}

LossMean& MetricTracker::mean_of(const std::string& name, bool stands_for_loss) {
  for (const StepMean& step : step_means_) {
    if (step.name == name && step.stands_for_loss == stands_for_loss) return *step.mean;
  }
  for (const auto& [known, metric] : metrics()) {
    if (known != name) continue;
    throw ConfigError("fit", "the values of a step and the metrics have different names",
                      "both have " + in_quotes(name), "rename the value that the step returns");
  }
  const auto mean = std::make_shared<LossMean>(name);
  step_means_.push_back({name, stands_for_loss, mean});
  restore({{name, mean}}, restored_means_);
  return *mean;
}

void MetricTracker::set_restored(const Json& totals, MetricSums sums) {
  check_totals(totals);
  restored_ = {totals, std::move(sums)};
}

void MetricTracker::begin_epoch(int64_t first_step) {
  const Restored saved = std::exchange(restored_, {});
  reset();
  // A new epoch has no totals to continue from.
  if (saved.totals.is_null() || first_step == 0) return;
  restored_ = saved;
  const Json& loss = saved.totals["loss"];
  loss_ = {loss[0].get<double>(), loss[1].get<int64_t>()};
  if (sums_) {
    restore_sums();
    return;
  }
  // The next batch updates metrics of layers before it chooses the others.
  restore(layer_metrics(model_), saved);
  restored_means_ = saved;
  for (const StepMean& step : step_means_) restore({{step.name, step.mean}}, saved);
  if (!outputs_.empty()) restore_metrics();
}

/// Restores the metrics with known names; others begin at zero.
void MetricTracker::restore_metrics() { restore(metrics_, restored_); }

void MetricTracker::restore(const NamedMetrics& metrics, const Restored& saved) {
  if (saved.totals.is_null()) return;
  const Json& all = saved.totals["metrics"];
  for (const auto& [name, metric] : metrics) {
    const auto found = all.find(name);
    if (found == all.end()) continue;
    const auto sums = saved.sums.find(name);
    if (sums != saved.sums.end() && found->contains("known")) {
      metric->restore_unresolved(
          {unstacked_sums(sums->second), (*found)["known"].get<std::vector<double>>()});
    } else {
      metric->restore((*found)["totals"].get<std::vector<double>>());
    }
  }
}

void MetricTracker::restore_sums() {
  const Json saved = std::exchange(restored_, {}).totals;
  for (const auto& [name, metric] : saved["metrics"].items()) {
    StepTotals::MetricTotals& sum = sum_of(*sums_, name);
    sum.totals = metric["totals"].get<std::vector<double>>();
    sum.value = metric["value"].get<double>() * static_cast<double>(loss_.rows());
  }
}

Json MetricTracker::totals() const {
  const ProfileSpan span(SpanKind::metrics, "read metrics");
  if (sums_) return {{"loss", {loss_.sum(), loss_.rows()}}, {"metrics", summed()}};
  // A resumed epoch before its first step.
  if (!restored_.totals.is_null()) {
    return {{"loss", {loss_.sum(), loss_.rows()}}, {"metrics", restored_.totals["metrics"]}};
  }
  const NamedMetrics all = metrics();
  std::vector<const Metric*> list;
  for (const auto& [name, metric] : all) list.push_back(metric.get());
  const std::vector<std::vector<double>> sums = Metric::totals(list);
  Json values = Json::object();
  for (size_t i = 0; i < list.size(); ++i) {
    values[all[i].first] = {{"totals", sums[i]},
                            {"known", list[i]->unresolved().known},
                            {"value", list[i]->result(sums[i])}};
  }
  return {{"loss", {loss_.sum(), loss_.rows()}}, {"metrics", values}};
}

MetricSums MetricTracker::sums() const {
  if (sums_) return {};
  if (!restored_.totals.is_null()) return restored_.sums;
  MetricSums all;
  for (const auto& [name, metric] : metrics()) {
    const DTensor sums = metric->unresolved().sums;
    if (sums.defined()) all[name] = stacked_sums(sums);
  }
  return all;
}

Logs MetricTracker::logs_of(const Json& totals) const {
  Logs logs;
  if (logs_loss()) logs.emplace_back("loss", loss_.value());
  for (const auto& [name, metric] : totals.at("metrics").items()) {
    logs.emplace_back(name, metric.at("value").get<double>());
  }
  std::stable_sort(logs.begin(), logs.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return logs;
}

void MetricTracker::add(const StepTotals& step) {
  if (step.rows > 0) loss_.add(step.loss / static_cast<double>(step.rows), step.rows);
  if (step.rows > 0) sums_log_loss_ = step.logs_loss;
  for (const StepTotals::MetricTotals& metric : step.metrics) {
    StepTotals::MetricTotals& sum = sum_of(*sums_, metric.name);
    add_all(sum.totals, metric.totals);
    sum.value += metric.value * static_cast<double>(step.rows);
  }
}

Json MetricTracker::summed() const {
  const NamedMetrics all = metrics();
  Json values = Json::object();
  for (const StepTotals::MetricTotals& sum : *sums_) {
    const auto it = std::find_if(all.begin(), all.end(),
                                 [&](const auto& entry) { return entry.first == sum.name; });
    const double rows = static_cast<double>(std::max<int64_t>(1, loss_.rows()));
    const bool known = it != all.end();
    // The totals may come from a checkpoint.
    if (known && !sum.totals.empty()) it->second->check_totals(sum.totals.size());
    const double value = known ? it->second->result(sum.totals) : sum.value / rows;
    values[sum.name] = {{"totals", sum.totals}, {"value", value}};
  }
  return values;
}

}  // namespace tessera::detail
