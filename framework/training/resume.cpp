#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {

namespace {

void check_totals(const Json& totals) {
  const auto number = [](const Json& value) { return value.is_number(); };
  const auto numbers = [&](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), number);
  };
  const auto metric = [&](const Json& value) {
    return value.is_object() && value.contains("totals") && numbers(value["totals"]) &&
           value.contains("value") && number(value["value"]);
  };
  const bool fits = totals.is_object() && totals.contains("loss") && numbers(totals["loss"]) &&
                    totals["loss"].size() == 2 && totals.contains("metrics") &&
                    totals["metrics"].is_object() &&
                    std::all_of(totals["metrics"].begin(), totals["metrics"].end(), metric);
  if (fits) return;
  throw ConfigError("restore_metric_totals", "totals are what metric_totals() gave", totals.dump(),
                    "pass those of a checkpoint");
}

}  // namespace

void Model::Training::begin_epoch() {
  const Json kept = std::exchange(restored, nullptr);
  reset_metrics();
  // An epoch that begins has nothing to count on from.
  if (kept.is_null() || position.step == 0) return;
  restored = kept;
  loss = {kept["loss"][0].get<double>(), kept["loss"][1].get<int64_t>()};
  if (remote_sums) {
    begin_sums();
  } else if (!metrics.empty()) {
    restore_metrics();
  }
}

/// Metrics of other names than then begin anew.
void Model::Training::restore_metrics() {
  const Json kept = std::exchange(restored, nullptr);
  if (kept.is_null()) return;
  for (const auto& [name, metric] : metrics) {
    const auto found = kept["metrics"].find(name);
    if (found != kept["metrics"].end()) {
      metric->restore((*found)["totals"].get<std::vector<double>>());
    }
  }
}

FitPosition Model::fit_position() const { return training("fit_position").position; }

void Model::set_fit_position(const FitPosition& position) {
  if (position.epoch < 0 || position.step < 0) {
    throw ConfigError("set_fit_position", "epoch and step are counted from 0",
                      str("epoch ", position.epoch, ", step ", position.step),
                      "pass what fit_position() gave");
  }
  training("set_fit_position").position = position;
}

History Model::history() const {
  const Training& state = training("history");
  History history = state.history;
  if (state.epoch_ends) history.append(state.position.epoch - 1, state.epoch_logs);
  return history;
}

void Model::set_history(const History& history) { training("set_history").history = history; }

Json Model::Training::totals() const {
  const ProfileSpan span(SpanKind::metrics, "read metrics");
  if (remote_sums) return {{"loss", {loss.sum(), loss.rows()}}, {"metrics", remote_values()}};
  std::vector<const Metric*> list;
  for (const auto& [name, metric] : metrics) list.push_back(metric.get());
  const std::vector<std::vector<double>> sums = Metric::totals(list);
  Json values = Json::object();
  for (size_t i = 0; i < list.size(); ++i) {
    values[metrics[i].first] = {{"totals", sums[i]}, {"value", list[i]->result(sums[i])}};
  }
  // The epoch goes on, but without a batch that would tell which metrics there are.
  if (!restored.is_null()) values = restored["metrics"];
  return {{"loss", {loss.sum(), loss.rows()}}, {"metrics", values}};
}

Logs Model::Training::logs_of(const Json& totals) const {
  Logs logs = {{"loss", loss.value()}};
  for (const auto& [name, metric] : totals.at("metrics").items()) {
    logs.emplace_back(name, metric.at("value").get<double>());
  }
  std::stable_sort(logs.begin(), logs.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return logs;
}

Json Model::metric_totals() const { return training("metric_totals").totals(); }

void Model::restore_metric_totals(const Json& totals) {
  check_totals(totals);
  training("restore_metric_totals").restored = totals;
}

}  // namespace tessera
