#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/pipeline/check_schedule.hpp>
#include <tessera/framework/pipeline/schedule_csv.hpp>
#include <tessera/framework/pipeline/simulate_schedule.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const PipelineSchedule schedule = parse_schedule(text, "schedule.csv");
    fuzz::require(parse_schedule(to_csv(schedule), "schedule.csv") == schedule);
    check_schedule(schedule);
    // A schedule that can run ends.
    const ScheduleTimes times = simulate_schedule(schedule, equal_costs(schedule));
    fuzz::require(times.makespan > 0 && times.idle_share >= 0 && times.idle_share < 1);
  } catch (const ConfigError&) {
    return 0;
  }
  return 0;
}
