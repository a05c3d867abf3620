#include <tessera/framework/pipeline/simulate_schedule.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/pipeline/check_schedule.hpp>
#include <tessera/framework/pipeline/internal/action_times.hpp>

namespace tessera::detail {
namespace {

void add_times(const PipelineSchedule& schedule, const std::vector<StageCost>& costs,
               ScheduleTimes& times) {
  ActionTimes ends(schedule);
  std::vector<double> free(schedule.actions.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t d = 0; d < schedule.actions.size(); ++d) {
      const auto& actions = schedule.actions[d];
      auto& timed = times.devices[d];
      while (timed.size() < actions.size()) {
        const PipelineAction& action = actions[timed.size()];
        const auto ready = ends.ready(action);
        if (!ready) break;
        const double start = std::max(*ready, free[d]);
        free[d] = start + action_cost(action.kind, costs[static_cast<size_t>(action.stage)]);
        ends.set(action, free[d]);
        timed.push_back({action, start, free[d]});
        moved = true;
      }
    }
  }
  for (size_t d = 0; d < schedule.actions.size(); ++d) {
    if (times.devices[d].size() == schedule.actions[d].size()) continue;
    const PipelineAction& action = schedule.actions[d][times.devices[d].size()];
    throw ScheduleError(ScheduleFault::cycle, static_cast<int64_t>(d), action,
                        str("pipeline schedule: device ", d, ", stage ", action.stage,
                            ", microbatch ", action.microbatch),
                        "no devices wait for each other", to_string(action) + " never runs", "");
  }
}

void add_idle_shares(ScheduleTimes& times) {
  for (const auto& device : times.devices) {
    for (const TimedAction& timed : device) times.makespan = std::max(times.makespan, timed.end);
  }
  double idle = 0;
  for (const auto& device : times.devices) {
    double busy = 0;
    for (const TimedAction& timed : device) busy += timed.end - timed.start;
    times.idle_shares.push_back(times.makespan > 0 ? 1 - busy / times.makespan : 0);
    idle += times.idle_shares.back();
  }
  times.idle_share = idle / static_cast<double>(times.devices.size());
}

void add_in_flight(const PipelineSchedule& schedule, ScheduleTimes& times) {
  std::vector<int64_t> held(static_cast<size_t>(schedule.stages()), 0);
  times.stage_in_flight = held;
  for (const auto& device : schedule.actions) {
    int64_t now = 0;
    int64_t peak = 0;
    for (const PipelineAction& action : device) {
      const auto stage = static_cast<size_t>(action.stage);
      if (action.kind == ActionKind::forward) {
        peak = std::max(peak, ++now);
        times.stage_in_flight[stage] = std::max(times.stage_in_flight[stage], ++held[stage]);
      } else if (action.kind != ActionKind::input_gradient) {
        --now;
        --held[stage];
      }
    }
    times.in_flight.push_back(static_cast<double>(peak) / static_cast<double>(schedule.chunks()));
  }
}

}  // namespace

std::vector<StageCost> equal_costs(const PipelineSchedule& schedule) {
  const double part = 1 / static_cast<double>(schedule.chunks());
  return std::vector<StageCost>(static_cast<size_t>(schedule.stages()), {part, part, part});
}

ScheduleTimes simulate_schedule(const PipelineSchedule& schedule,
                                const std::vector<StageCost>& costs) {
  if (static_cast<int64_t>(costs.size()) != schedule.stages()) {
    throw ConfigError("pipeline", str("costs are those of ", schedule.stages(), " stages"),
                      str(costs.size(), " costs"), "give one cost for each stage");
  }
  const PipelineSchedule computed = without_transfers(schedule);
  ScheduleTimes times;
  times.devices.resize(computed.actions.size());
  add_times(computed, costs, times);
  add_idle_shares(times);
  add_in_flight(computed, times);
  return times;
}

}  // namespace tessera::detail
