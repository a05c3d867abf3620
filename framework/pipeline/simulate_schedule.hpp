#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/pipeline/make_schedule.hpp>

namespace tessera::detail {

/// An action with its begin and end.
struct TimedAction {
  PipelineAction action;
  double start = 0;
  double end = 0;
};

/// A schedule as it runs if each action begins as soon as its device is free and its operand is
/// computed; transfers take no time.
struct ScheduleTimes {
  std::vector<std::vector<TimedAction>> devices;  ///< by device, in order; no sends and receives
  double makespan = 0;                            ///< end of the last action
  std::vector<double> idle_shares;                ///< by device: the part of the makespan it waits
  double idle_share = 0;                          ///< the mean of all devices
  /// Activations that each device holds at most, in microbatches: from a stage's F to its B or W.
  std::vector<double> in_flight;
  std::vector<int64_t> stage_in_flight;  ///< microbatches that each stage holds at most
};

/// Returns costs of 1/chunks for F, I and W of every stage: a device needs 3 for each microbatch.
std::vector<StageCost> equal_costs(const PipelineSchedule& schedule);

/// Computes the times of a schedule that check_schedule() accepts. Throws ConfigError unless there
/// is a cost for each stage, and ScheduleError if devices wait for each other.
ScheduleTimes simulate_schedule(const PipelineSchedule& schedule,
                                const std::vector<StageCost>& costs);

}  // namespace tessera::detail
