// The part of fit that differs where other processes make its steps.
#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/training/remote_steps.hpp>
#include <tessera/framework/training/step_plan.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

thread_local std::shared_ptr<RemoteSteps> scoped_steps;

StepTotals::Of& sum_of(std::vector<StepTotals::Of>& sums, const std::string& name) {
  const auto found = std::find_if(sums.begin(), sums.end(),
                                  [&](const StepTotals::Of& of) { return of.name == name; });
  if (found != sums.end()) return *found;
  return sums.emplace_back(StepTotals::Of{.name = name, .totals = {}});
}

void add_all(std::vector<double>& sum, const std::vector<double>& addends) {
  sum.resize(std::max(sum.size(), addends.size()));
  for (size_t i = 0; i < addends.size(); ++i) sum[i] += addends[i];
}

}  // namespace

RemoteStepsScope::RemoteStepsScope(std::shared_ptr<RemoteSteps> steps)
    : former_(std::exchange(scoped_steps, std::move(steps))) {}
RemoteStepsScope::~RemoteStepsScope() { scoped_steps = std::move(former_); }
std::shared_ptr<RemoteSteps> current_remote_steps() { return scoped_steps; }

void Model::Training::begin_remote(Model& model, const FitData& data, const FitOptions& given) {
  const auto need_steps = [](const DatasetHandle& d, const auto& steps, const char* option) {
    if (!d || !d.stream() || steps || d.stream()->steps()) return;
    throw ConfigError("fit", str(option, " tells how many batches a stream has"), "nothing",
                      "set it: steps are handed out by their numbers");
  };
  need_steps(data.train, given.steps_per_epoch, "steps_per_epoch");
  need_steps(data.validation, given.validation_steps, "validation_steps");
  // Planning begins the metrics anew.
  const Json kept = restored;
  try {
    // Chooses the metrics, whose totals the steps give.
    if (metrics.empty() && !data.train.stream()) {
      model.plan(data.train, {.batch_size = given.batch_size});
    }
  } catch (const StateError&) {
    // A train_step() of the user's own that reads numbers: values are averaged over rows instead.
  }
  restored = kept;
  remote_sums.emplace();
  remote->begin(model, data, given);
}

void Model::Training::begin_sums() {
  const Json kept = std::exchange(restored, nullptr);
  if (kept.is_null()) return;
  for (const auto& [name, metric] : kept["metrics"].items()) {
    StepTotals::Of& sum = sum_of(*remote_sums, name);
    sum.totals = metric["totals"].get<std::vector<double>>();
    sum.value = metric["value"].get<double>() * static_cast<double>(loss.rows());
  }
}

void Model::Training::add_remote(const StepTotals& step) {
  if (step.rows > 0) loss.add(step.loss / static_cast<double>(step.rows), step.rows);
  for (const StepTotals::Of& of : step.metrics) {
    StepTotals::Of& sum = sum_of(*remote_sums, of.name);
    add_all(sum.totals, of.totals);
    sum.value += of.value * static_cast<double>(step.rows);
  }
}

Json Model::Training::remote_values() const {
  Json values = Json::object();
  for (const StepTotals::Of& sum : *remote_sums) {
    const auto found = std::find_if(metrics.begin(), metrics.end(),
                                    [&](const auto& entry) { return entry.first == sum.name; });
    const double rows = static_cast<double>(std::max<int64_t>(1, loss.rows()));
    const double value =
        found == metrics.end() ? sum.value / rows : found->second->result(sum.totals);
    values[sum.name] = {{"totals", sum.totals}, {"value", value}};
  }
  return values;
}

void Model::Training::run_remote(Model& model, const StepRange& range,
                                 const CallbackList& callbacks) {
  const bool trains = range.phase == Phase::train;
  for (int64_t at = range.first; at < range.last && !(trains && stop);) {
    StepRange part = range;
    part.first = at;
    if (trains) {
      const auto next = callbacks.batches_to_weights();
      if (next) part.last = std::min(range.last, at + std::max<int64_t>(1, *next));
    }
    at += run_part(model, part, callbacks);
    if (const int signal = stop_signal()) {
      throw interrupted(signal, trains ? "fit" : "fit, validation", range.phase,
                        place_of(range.phase, range.epoch, at));
    }
  }
}

int64_t Model::Training::run_part(Model& model, const StepRange& part,
                                  const CallbackList& callbacks) {
  const bool trains = part.phase == Phase::train;
  const auto count = static_cast<size_t>(part.last - part.first);
  std::vector<double> losses(count);
  int64_t number = part.first;
  const auto tell = [&] {
    callbacks.batch_begin(part.phase, number);
    const bool all = callbacks.wants_batch_logs(part.phase, number);
    callbacks.batch_end(part.phase, number, all ? logs() : Logs{{"loss", loss.value()}});
  };
  const auto add = [&](int64_t step, const StepTotals& totals) {
    add_remote(totals);
    const double value = totals.loss / static_cast<double>(std::max<int64_t>(1, totals.rows));
    losses[static_cast<size_t>(step - part.first)] = value;
    if (trains && must_be_finite) check_finite(value, {part.epoch, step});
    // The last one waits for the weights.
    if (number + 1 < part.last) tell();
    ++number;
    return !(trains && stop) && stop_signal() == 0;
  };
  const int64_t done = remote->run(part, add);
  if (trains) {
    losses.resize(static_cast<size_t>(done));
    history.steps.insert(history.steps.end(), losses.begin(), losses.end());
    remote->fetch(model);
    position = {part.epoch, part.first + done};
  }
  if (number == part.last) {
    --number;
    tell();
  }
  return done;
}

}  // namespace tessera
