#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/pipeline/pipeline_schedule.hpp>

namespace tessera::detail {

/// The faults of a schedule.
enum class ScheduleFault : uint8_t {
  shape,         ///< no devices, stages or microbatches, or devices with unequal numbers of stages
  unknown,       ///< an action of a stage or microbatch that does not exist
  wrong_device,  ///< an action on a device that does not hold the stage
  repeated,      ///< an action twice
  mixed_backward,  ///< B beside I or W
  missing,         ///< an action that is not there
  order,           ///< an action before one on the same device whose result it needs
  transfer,        ///< a send or receive that is missing, needless or on the wrong side
  early_receive,   ///< a receive before an action that does not need it
  transfer_order,  ///< a device receives in another order than the other sends
  in_flight,       ///< a device holds more microbatches than it may
  cycle            ///< devices wait for each other
};

/// A schedule cannot be run: what is wrong, and where.
class ScheduleError : public ConfigError {
 public:
  ScheduleError(ScheduleFault fault, int64_t device, const PipelineAction& action,
                const std::string& where, const std::string& expected, const std::string& received,
                const std::string& fix)
      : ConfigError(where, expected, received, fix),
        fault_(fault),
        device_(device),
        action_(action) {}
  ScheduleFault fault() const { return fault_; }
  int64_t device() const { return device_; }
  const PipelineAction& action() const { return action_; }

 private:
  ScheduleFault fault_;
  int64_t device_;
  PipelineAction action_;
};

/// How check_schedule() checks.
struct ScheduleChecks {
  /// Microbatches whose activations each device may hold, as in in_flight_bounds(); empty: any
  /// number.
  std::vector<double> in_flight_bounds = {};
  std::string where = "pipeline schedule";  ///< name of the schedule in errors
};

/// Throws ScheduleError for the first fault of a schedule, with its sends and receives or, if it
/// has none, with those of with_transfers(). Sends and receives between two devices are in the same
/// order at both ends, apart for each of the two passes.
void check_schedule(const PipelineSchedule& schedule, const ScheduleChecks& checks = {});

}  // namespace tessera::detail
