#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/pipeline_options.hpp>
#include <tessera/framework/pipeline/pipeline_schedule.hpp>

namespace tessera::detail {

/// Times of a stage for one microbatch, in any unit.
struct StageCost {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
};

/// Returns the time of both passes.
inline double stage_time(const StageCost& cost) {
  return cost.forward + cost.input_gradient + cost.weight_gradient;
}

/// The arguments of make_schedule().
struct ScheduleOptions {
  std::string name = "1f1b";  ///< PipelineParallelOptions::schedule, but no file
  int64_t devices = 1;
  int64_t microbatches = 1;
  int64_t chunks = 0;  ///< PipelineParallelOptions::chunks
  /// Cost of each stage; none: all equal. They say when "zb_h1" and "zb_v" compute the gradients of
  /// weights.
  std::vector<StageCost> costs = {};
  /// Microbatches whose activations a device may hold; a microbatch counts 1/chunks for each of the
  /// device's stages.
  std::optional<double> memory_limit = std::nullopt;
};

/// Returns the schedule; equal options give equal schedules. "interleaved" takes about as many
/// microbatches at a time through a stage as there are devices, PyTorch's rounds where their sizes
/// are equal. Throws ConfigError for options that do not fit together and for a memory limit that
/// the schedule cannot keep, naming the least that it can.
PipelineSchedule make_schedule(const ScheduleOptions& options);

/// Returns the schedule of a pipeline over `devices` devices, by name or from a file. Throws
/// ConfigError also for a file of other numbers of devices, microbatches or chunks.
PipelineSchedule make_schedule(const PipelineParallelOptions& options, int64_t devices,
                               const std::vector<StageCost>& costs = {},
                               std::optional<double> memory_limit = std::nullopt);

/// Returns the microbatches whose activations each device of that schedule holds at most, by
/// formula.
std::vector<double> in_flight_bounds(const ScheduleOptions& options);

}  // namespace tessera::detail
