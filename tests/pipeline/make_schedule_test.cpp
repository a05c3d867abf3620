#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/pipeline_options.hpp>
#include <tessera/framework/pipeline/check_schedule.hpp>
#include <tessera/framework/pipeline/make_schedule.hpp>
#include <tessera/framework/pipeline/simulate_schedule.hpp>

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace make_schedule_test {

/// Calls `f` with the options of every schedule of up to `p` devices, `m` microbatches and four
/// chunks.
template <class F>
void for_each_schedule(int64_t p, int64_t m, F f) {
  for (const std::string& name : pipeline_schedule_names()) {
    for (int64_t devices = 1; devices <= p; ++devices) {
      for (int64_t microbatches = 1; microbatches <= m; ++microbatches) {
        for (int64_t chunks = 1; chunks <= (name == "interleaved" ? 4 : 1); ++chunks) {
          f(ScheduleOptions{.name = name,
                            .devices = devices,
                            .microbatches = microbatches,
                            .chunks = name == "interleaved" ? chunks : 0});
        }
      }
    }
  }
}

std::string name_of(const ScheduleOptions& options) {
  return str(options.name, " p=", options.devices, " m=", options.microbatches,
             " v=", options.chunks);
}

ScheduleTimes times_of(const ScheduleOptions& options) {
  const PipelineSchedule schedule = make_schedule(options);
  return simulate_schedule(schedule, equal_costs(schedule));
}

TEST_CASE("every schedule of up to 8 devices, 32 microbatches and 4 chunks is valid") {
  int64_t count = 0;
  for_each_schedule(8, 32, [&](const ScheduleOptions& options) {
    INFO(name_of(options));
    const PipelineSchedule schedule = make_schedule(options);
    REQUIRE(schedule.microbatches == options.microbatches);
    REQUIRE(schedule.stages() == options.devices * schedule_chunks(options.name, options.chunks));
    const std::vector<double> bounds = in_flight_bounds(options);
    check_schedule(schedule, {.in_flight_bounds = bounds});
    const ScheduleTimes times = simulate_schedule(schedule, equal_costs(schedule));
    for (size_t d = 0; d < bounds.size(); ++d) REQUIRE(times.in_flight[d] <= bounds[d] + 1e-9);
    ++count;
  });
  CHECK(count == 8 * 32 * 8);
}

TEST_CASE("idle shares are those of the formulas") {
  int64_t count = 0;
  for_each_schedule(8, 32, [&](const ScheduleOptions& options) {
    const auto p = static_cast<double>(options.devices);
    const auto m = static_cast<double>(options.microbatches);
    const auto v = static_cast<double>(schedule_chunks(options.name, options.chunks));
    double work = m;
    bool valid = true;
    if (options.name == "interleaved") {
      work = v * m;
      valid = options.microbatches % options.devices == 0;
    } else if (options.name == "zb_h1") {
      work = 3 * m;
      valid = m >= p;
    } else if (options.name == "zb_v") {
      work = 6 * m;
      valid = m >= 2 * p - 1;
    }
    if (!valid) return;
    INFO(name_of(options));
    const ScheduleTimes times = times_of(options);
    REQUIRE(times.idle_share == Approx((p - 1) / (work + p - 1)).margin(1e-9).epsilon(0));
    REQUIRE(times.makespan == Approx(3 * m * (work + p - 1) / work).epsilon(1e-12));
    ++count;
  });
  CHECK(count > 1000);
  const auto share = [](const char* name, int64_t chunks = 0) {
    return times_of({.name = name, .devices = 4, .microbatches = 8, .chunks = chunks}).idle_share;
  };
  CHECK(share("gpipe") == Approx(3.0 / 11));
  CHECK(share("1f1b") == Approx(3.0 / 11));
  CHECK(share("interleaved", 2) == Approx(3.0 / 19));
  CHECK(share("zb_h1") == Approx(3.0 / 27));
  CHECK(share("zb_v") == Approx(3.0 / 51));
}

TEST_CASE("microbatches in flight are those of the formulas") {
  for_each_schedule(8, 32, [&](const ScheduleOptions& options) {
    const auto p = static_cast<double>(options.devices);
    const auto m = static_cast<double>(options.microbatches);
    const auto v = static_cast<double>(schedule_chunks(options.name, options.chunks));
    INFO(name_of(options));
    const std::vector<double> in_flight = times_of(options).in_flight;
    for (int64_t device = 0; device < options.devices; ++device) {
      const auto s = static_cast<double>(device);
      double bound = m;
      if (options.name == "1f1b") bound = std::min(m, p - s);
      if (options.name == "interleaved") {
        if (options.microbatches % options.devices != 0) continue;
        bound = std::min(m, (2 * (p - 1 - s) + (v - 1) * p + 1) / v);
      }
      if (options.name == "zb_h1" || options.name == "zb_v") bound = std::min(m, p);
      const double held = in_flight[static_cast<size_t>(device)];
      REQUIRE(held <= bound + 1e-9);
      // The bound of the zero-bubble schedules is reached where there is work to be put off.
      if (options.name[0] != 'z') REQUIRE(held == Approx(bound).margin(1e-9));
      if (options.name == "zb_v" && m >= 2 * p - 1) REQUIRE(held == Approx(p));
    }
  });
}

TEST_CASE("1F1B and interleaved schedules are PyTorch's") {
  const auto lines = [](const ScheduleOptions& options) {
    std::string text;
    for (const auto& device : make_schedule(options).actions) {
      for (const PipelineAction& action : device) text += to_string(action) + " ";
      text += "\n";
    }
    return text;
  };
  CHECK(lines({.name = "1f1b", .devices = 2, .microbatches = 3}) ==
        "0F0 0F1 0B0 0F2 0B1 0B2 \n"
        "1F0 1B0 1F1 1B1 1F2 1B2 \n");
  CHECK(lines({.name = "gpipe", .devices = 2, .microbatches = 2}) ==
        "0F0 0F1 0B0 0B1 \n"
        "1F0 1F1 1B0 1B1 \n");
  CHECK(lines({.name = "interleaved", .devices = 2, .microbatches = 4}) ==
        "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3 \n"
        "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3 \n");
  CHECK(lines({.name = "zb_h1", .devices = 2, .microbatches = 3}) ==
        "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2 \n"
        "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2 \n");
}

TEST_CASE("ZB-V puts the first and the last stage on one device") {
  const PipelineSchedule schedule =
      make_schedule({.name = "zb_v", .devices = 3, .microbatches = 6});
  CHECK(schedule.device_of == std::vector<int64_t>{0, 1, 2, 2, 1, 0});
  const PipelineSchedule round =
      make_schedule({.name = "interleaved", .devices = 3, .microbatches = 6});
  CHECK(round.device_of == std::vector<int64_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("schedules keep to a limit of memory, or name the least that they can") {
  for_each_schedule(5, 12, [&](ScheduleOptions options) {
    for (double limit = 1; limit <= 13; limit += 0.5) {
      options.memory_limit = limit;
      INFO(name_of(options) << " limit " << limit);
      try {
        const PipelineSchedule schedule = make_schedule(options);
        std::vector<double> bounds(static_cast<size_t>(options.devices), limit);
        check_schedule(schedule, {.in_flight_bounds = bounds});
        check_schedule(schedule, {.in_flight_bounds = in_flight_bounds(options)});
      } catch (const ScheduleError&) {
        throw;
      } catch (const ConfigError& error) {
        REQUIRE(std::string(error.what()).find("holds at least") != std::string::npos);
        REQUIRE(options.name != "1f1b");
        REQUIRE(options.name != "zb_h1");
      }
    }
  });
  const auto make = [](const char* name, double limit) {
    return make_schedule({.name = name, .devices = 4, .microbatches = 8, .memory_limit = limit});
  };
  CHECK_THROWS_WITH(make("gpipe", 7), Contains("holds at least 8 microbatches") &&
                                          Contains("a limit of 7") && Contains("1f1b"));
  CHECK_THROWS_WITH(make("zb_v", 3.5), Contains("at least 4 microbatches"));
  CHECK_THROWS_WITH(make("interleaved", 2), Contains("at least 2.5 microbatches"));
  CHECK_THROWS_WITH(make("1f1b", 0.5), Contains("at least 1 microbatches"));
  CHECK(make("gpipe", 8) == make_schedule({.name = "gpipe", .devices = 4, .microbatches = 8}));
}

TEST_CASE("weight gradients fill gaps as long as they are") {
  // Weight gradients that cost nothing are no reason to wait, dear ones are put off.
  for (const double weight : {0.0, 0.25, 0.5, 2.0, 4.0}) {
    for (const char* name : {"zb_h1", "zb_v"}) {
      for (int64_t p = 2; p <= 6; ++p) {
        ScheduleOptions options{.name = name, .devices = p, .microbatches = 2 * p};
        const int64_t stages = p * schedule_chunks(name, 0);
        options.costs.assign(static_cast<size_t>(stages), {1, 1, weight});
        INFO(name_of(options) << " W " << weight);
        const PipelineSchedule schedule = make_schedule(options);
        check_schedule(schedule, {.in_flight_bounds = in_flight_bounds(options)});
        const double zero_bubble = simulate_schedule(schedule, options.costs).makespan;
        ScheduleOptions plain{.name = "1f1b", .devices = p, .microbatches = 2 * p};
        std::vector<StageCost> costs(static_cast<size_t>(p), {1, 1, weight});
        if (std::string(name) == "zb_v") costs.assign(costs.size(), {2, 2, 2 * weight});
        CHECK(zero_bubble <= simulate_schedule(make_schedule(plain), costs).makespan + 1e-9);
      }
    }
  }
}

TEST_CASE("options that do not fit are refused by name") {
  const auto make = [](ScheduleOptions options) { return make_schedule(options); };
  CHECK_THROWS_WITH(make({.name = "1f2b"}), Contains("schedule is known") && Contains("\"1f1b\""));
  CHECK_THROWS_WITH(make({.name = "1f1b", .chunks = 2}),
                    Contains("has 1 chunks") && Contains("\"interleaved\""));
  CHECK_THROWS_WITH(make({.name = "zb_v", .chunks = 3}), Contains("\"zb_v\" has 2 chunks"));
  CHECK_THROWS_WITH(make({.name = "interleaved", .chunks = 65}), Contains("1 to 64 chunks"));
  CHECK_THROWS_WITH(make({.name = "1f1b", .devices = 0}), Contains("at least one device"));
  CHECK_THROWS_WITH(make({.name = "1f1b", .microbatches = 0}), Contains("microbatches is from 1"));
  CHECK_THROWS_WITH(make({.name = "file.csv"}), Contains("made by name"));
  CHECK_THROWS_WITH(make({.name = "1f1b", .devices = 2, .microbatches = 1, .costs = {{}}}),
                    Contains("costs are those of 2 stages"));
  const PipelineSchedule schedule = make_schedule({.name = "1f1b", .devices = 2});
  CHECK_THROWS_WITH(simulate_schedule(schedule, {}), Contains("costs are those of 2 stages"));
}

}  // namespace make_schedule_test
