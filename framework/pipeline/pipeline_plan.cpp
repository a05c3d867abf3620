#include <tessera/framework/pipeline/pipeline_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/drawing/styled_table.hpp>

namespace tessera::detail {
namespace {

std::string percent(double share) {
  char text[32];
  // Adding 0 avoids "-0.0".
  std::snprintf(text, sizeof text, "%.1f %%", std::round(1000 * share) / 10 + 0.0);
  return text;
}

/// Returns the first and the last layer of a stage, and how many there are.
std::string layers_text(const PipelinePlan& plan, int64_t stage) {
  const auto& stage_of = plan.split.stage_of;
  const auto [begin, end] = std::equal_range(stage_of.begin(), stage_of.end(), stage);
  const std::string& first = plan.layers[static_cast<size_t>(begin - stage_of.begin())];
  const std::string& last = plan.layers[static_cast<size_t>(end - stage_of.begin()) - 1];
  if (end - begin == 1) return one_line(first);
  return str(one_line(first), " to ", one_line(last), " (", end - begin, ")");
}

std::string stages_table(const PipelinePlan& plan) {
  double total = 0;
  for (const StageCost& cost : plan.split.costs) total += stage_time(cost);
  std::vector<std::vector<std::string>> rows;
  for (size_t stage = 0; stage < plan.split.costs.size(); ++stage) {
    const double share = total > 0 ? stage_time(plan.split.costs[stage]) / total : 0;
    rows.push_back({str(stage), str(plan.schedule.device_of[stage]),
                    layers_text(plan, static_cast<int64_t>(stage)), percent(share),
                    str(plan.times.stage_in_flight[stage])});
  }
  return draw_text_table({{"Stage", 1}, {"Device", 1}, {"Layers"}, {"Cost", 1}, {"In flight", 1}},
                         rows);
}

std::string devices_table(const PipelinePlan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (size_t d = 0; d < plan.schedule.actions.size(); ++d) {
    std::vector<std::string> stages;
    for (size_t stage = 0; stage < plan.schedule.device_of.size(); ++stage) {
      if (plan.schedule.device_of[stage] == static_cast<int64_t>(d)) stages.push_back(str(stage));
    }
    rows.push_back({str(d), join(stages, ", "), percent(plan.times.idle_shares[d]),
                    str(plan.times.in_flight[d])});
  }
  return draw_text_table({{"Device", 1}, {"Stages"}, {"Idle", 1}, {"In flight", 1}}, rows);
}

/// Returns the time of the shortest action that takes any.
double shortest_action(const ScheduleTimes& times) {
  double shortest = 0;
  for (const auto& device : times.devices) {
    for (const TimedAction& timed : device) {
      const double length = timed.end - timed.start;
      if (length > 0 && (shortest == 0 || length < shortest)) shortest = length;
    }
  }
  return shortest;
}

}  // namespace

PipelinePlan plan_pipeline(const PipelineParallelOptions& options, int64_t devices,
                           const std::vector<LayerCost>& layers,
                           std::optional<double> memory_limit) {
  check_pipeline_options(options, devices);
  const int64_t chunks = is_schedule_file(options.schedule)
                             ? make_schedule(options, devices).chunks()
                             : schedule_chunks(options.schedule, options.chunks);
  PipelinePlan plan{.options = options,
                    .layers = {},
                    .split = split_stages(layers, devices * chunks, options.split),
                    .schedule = {},
                    .times = {}};
  for (const LayerCost& layer : layers) plan.layers.push_back(layer.path);
  plan.schedule = make_schedule(options, devices, plan.split.costs, memory_limit);
  plan.times = simulate_schedule(plan.schedule, plan.split.costs);
  return plan;
}

std::string to_string(const PipelinePlan& plan) {
  return str("Pipeline of ", plan.schedule.stages(), " stages on mesh dimension ",
             one_line(plan.options.stages), ", ", plan.schedule.microbatches,
             " microbatches, schedule ", one_line(plan.options.schedule), ": devices are idle ",
             percent(plan.times.idle_share), " of a step\n", stages_table(plan),
             devices_table(plan));
}

std::optional<std::string> draw_schedule(const ScheduleTimes& times, int64_t max_columns) {
  const double unit = shortest_action(times);
  if (unit == 0) return std::nullopt;
  const bool names_stages = times.stage_in_flight.size() > times.devices.size();
  const auto label = [&](const PipelineAction& action) {
    const std::string text = to_string(action);
    return names_stages ? text : text.substr(str(action.stage).size());
  };
  size_t width = 0;
  for (const auto& device : times.devices) {
    for (const TimedAction& timed : device) width = std::max(width, label(timed.action).size() + 1);
  }
  const double scale = static_cast<double>(width) / unit;
  const std::string title = "device ";
  const size_t left = title.size() + str(times.devices.size() - 1).size() + 2;
  const double columns = times.makespan * scale + static_cast<double>(left);
  if (columns > static_cast<double>(max_columns)) return std::nullopt;
  std::string text;
  for (size_t d = 0; d < times.devices.size(); ++d) {
    std::string line = title + str(d);
    for (const TimedAction& timed : times.devices[d]) {
      // An action that takes no time is not drawn.
      if (timed.end == timed.start) continue;
      const auto begin = left + static_cast<size_t>(std::lround(timed.start * scale));
      const auto end = left + static_cast<size_t>(std::lround(timed.end * scale));
      line.resize(begin, ' ');
      line += label(timed.action);
      line.resize(end - 1, '-');
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace tessera::detail
