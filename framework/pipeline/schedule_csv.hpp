#pragma once

#include <string>
#include <string_view>

#include <tessera/framework/pipeline/pipeline_schedule.hpp>

namespace tessera::detail {

/// Parses a schedule as PyTorch's `_PipelineScheduleRuntime` writes it: a line for each device,
/// with its actions between commas, "0F0,0F1,,0B0"; blank entries are ignored. Lines may have sends
/// and receives too (`compute_comms`). A stage is on the device whose line computes it. Throws
/// ConfigError, which names the line and column, for text of another form; check_schedule() checks
/// the order.
PipelineSchedule parse_schedule(std::string_view text, const std::string& source);

/// Parses and checks a file. Throws FileError if it cannot be read, and ConfigError like
/// parse_schedule() and check_schedule().
PipelineSchedule read_schedule_file(const std::string& path);

/// Returns a schedule as parse_schedule() reads it.
std::string to_csv(const PipelineSchedule& schedule);

}  // namespace tessera::detail
