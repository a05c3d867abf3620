#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/pipeline/simulate_schedule.hpp>
#include <tessera/framework/pipeline/split_stages.hpp>

namespace tessera::detail {

/// A pipeline as a plan shows it.
struct PipelinePlan {
  PipelineParallelOptions options;
  std::vector<std::string> layers;  ///< paths, in order
  StageSplit split;
  PipelineSchedule schedule;
  ScheduleTimes times;
};

/// Divides the layers into stages over `devices` devices, makes the schedule and computes its
/// times. Throws ConfigError like split_stages() and make_schedule().
PipelinePlan plan_pipeline(const PipelineParallelOptions& options, int64_t devices,
                           const std::vector<LayerCost>& layers,
                           std::optional<double> memory_limit = std::nullopt);

/// Returns a line with the idle share, and tables of the stages (layers, part of the cost,
/// microbatches in flight) and of the devices (stages, idle share, microbatches in flight).
std::string to_string(const PipelinePlan& plan);

/// Draws a schedule, a line for each device: "F0" at the time of an action, followed by "-" as long
/// as it takes; "3F0" names the stage too, if devices have several. Nothing if it is wider than
/// `max_columns` characters.
std::optional<std::string> draw_schedule(const ScheduleTimes& times, int64_t max_columns);

}  // namespace tessera::detail
