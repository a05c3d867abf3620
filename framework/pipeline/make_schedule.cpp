#include <tessera/framework/pipeline/make_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/pipeline/check_schedule.hpp>
#include <tessera/framework/pipeline/internal/weight_gradients.hpp>
#include <tessera/framework/pipeline/schedule_csv.hpp>

namespace tessera::detail {
namespace {

/// The forward and backward actions of one device, each in their order.
struct DeviceWork {
  std::vector<PipelineAction> forward;
  std::vector<PipelineAction> backward;
};

/// Begins with `ahead` forward actions, then takes a forward and a backward action in turns.
std::vector<PipelineAction> in_turns(const DeviceWork& work, int64_t ahead) {
  std::vector<PipelineAction> actions;
  const int64_t count = static_cast<int64_t>(work.forward.size());
  const auto begin = work.forward.begin();
  actions.insert(actions.end(), begin, begin + std::min(ahead, count));
  for (int64_t i = 0; i < count; ++i) {
    if (i + ahead < count) actions.push_back(work.forward[static_cast<size_t>(i + ahead)]);
    actions.push_back(work.backward[static_cast<size_t>(i)]);
  }
  return actions;
}

DeviceWork one_stage(int64_t stage, int64_t microbatches, ActionKind backward) {
  DeviceWork work;
  for (int64_t i = 0; i < microbatches; ++i) {
    work.forward.push_back({stage, ActionKind::forward, i});
    work.backward.push_back({stage, backward, i});
  }
  return work;
}

/// Sizes of the groups of microbatches that pass through a device's stages together: as many groups
/// as fit with at least one microbatch for each device, the first ones larger by one.
std::vector<int64_t> group_sizes(int64_t devices, int64_t microbatches) {
  const int64_t groups = std::max<int64_t>(1, microbatches / devices);
  std::vector<int64_t> sizes;
  for (int64_t g = 0; g < groups; ++g) {
    sizes.push_back(microbatches / groups + (g < microbatches % groups ? 1 : 0));
  }
  return sizes;
}

DeviceWork interleaved(int64_t device, int64_t devices, int64_t microbatches, int64_t chunks) {
  DeviceWork work;
  int64_t first = 0;
  for (const int64_t size : group_sizes(devices, microbatches)) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (int64_t i = first; i < first + size; ++i) {
        const int64_t last = chunks - 1 - chunk;
        work.forward.push_back({chunk * devices + device, ActionKind::forward, i});
        work.backward.push_back({last * devices + device, ActionKind::backward, i});
      }
    }
    first += size;
  }
  return work;
}

/// The order of forward actions and input gradients of ZB-V, where the device with the first stage
/// also has the last (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024).
std::vector<PipelineAction> v_order(int64_t device, int64_t devices, int64_t microbatches) {
  const int64_t down = device;
  const int64_t up = 2 * devices - 1 - device;
  int64_t forward[2] = {0, 0};
  int64_t backward[2] = {0, 0};
  std::vector<PipelineAction> actions;
  const auto add_forward = [&](int chunk) {
    actions.push_back({chunk == 0 ? down : up, ActionKind::forward, forward[chunk]++});
  };
  const auto add_backward = [&](int chunk) {
    actions.push_back({chunk == 0 ? down : up, ActionKind::input_gradient, backward[chunk]++});
  };
  // The order is for at least as many microbatches as fill the pipeline; those beyond the batch are
  // left out.
  const int64_t filling = std::max(2 * devices - 1, microbatches);
  for (int64_t i = 0; i < 2 * (devices - device) - 1; ++i) add_forward(0);
  for (int64_t i = 0; i < device; ++i) {
    add_forward(1);
    add_forward(0);
  }
  for (int64_t i = 0; i < devices - device; ++i) {
    add_forward(1);
    add_backward(1);
  }
  while (forward[1] < forward[0] || forward[0] < filling) {
    if (forward[0] < filling) add_forward(0);
    add_backward(0);
    add_forward(1);
    add_backward(1);
  }
  for (int64_t i = 0; i < device; ++i) {
    add_backward(0);
    add_backward(1);
  }
  for (int64_t i = 0; i < devices - device; ++i) add_backward(0);
  std::erase_if(actions,
                [&](const PipelineAction& action) { return action.microbatch >= microbatches; });
  return actions;
}

/// Activations of stages that a device holds at most.
int64_t held_stages(const ScheduleOptions& options, int64_t device) {
  const int64_t p = options.devices;
  const int64_t m = options.microbatches;
  const int64_t v = schedule_chunks(options.name, options.chunks);
  int64_t limit = v * m;
  if (options.memory_limit && *options.memory_limit < static_cast<double>(m)) {
    limit = static_cast<int64_t>(std::floor(*options.memory_limit * static_cast<double>(v) + 1e-9));
  }
  if (options.name == "1f1b") return std::min(limit, p - device);
  if (options.name == "zb_h1") return std::min(limit, p);
  if (options.name == "zb_v") return std::min(limit, v * p);
  if (options.name == "gpipe") return limit;
  const int64_t group = group_sizes(p, m).front();
  return std::min(limit, (v - 1) * group + 2 * (p - 1 - device) + 1);
}

/// The least number of such activations with which the schedule works.
int64_t least_held_stages(const ScheduleOptions& options) {
  const int64_t v = schedule_chunks(options.name, options.chunks);
  if (options.name == "gpipe") return options.microbatches;
  if (options.name == "zb_v") return v * std::min(options.devices, options.microbatches);
  if (options.name != "interleaved") return 1;
  return (v - 1) * group_sizes(options.devices, options.microbatches).front() + 1;
}

void check_schedule_options(const ScheduleOptions& options) {
  if (options.devices < 1) {
    throw ConfigError("pipeline", "a pipeline has at least one device", str(options.devices),
                      "name a mesh dimension");
  }
  check_pipeline_options(
      {.microbatches = options.microbatches, .schedule = options.name, .chunks = options.chunks},
      options.devices);
  const int64_t chunks = schedule_chunks(options.name, options.chunks);
  if (chunks == 0) {
    throw ConfigError("pipeline", "a schedule is made by name", options.name, "read the file");
  }
  const int64_t stages = options.devices * chunks;
  if (!options.costs.empty() && static_cast<int64_t>(options.costs.size()) != stages) {
    throw ConfigError("pipeline", str("costs are those of ", stages, " stages"),
                      str(options.costs.size(), " costs"), "give one cost for each stage");
  }
  const int64_t least = least_held_stages(options);
  if (held_stages(options, 0) >= least) return;
  throw ConfigError(
      "pipeline",
      str("schedule \"", options.name, "\" holds at least ",
          static_cast<double>(least) / static_cast<double>(chunks), " microbatches on a device"),
      str("a limit of ", *options.memory_limit),
      options.name == "1f1b" ? "allow one" : "allow as many, or take \"1f1b\"");
}

}  // namespace

PipelineSchedule make_schedule(const ScheduleOptions& options) {
  check_schedule_options(options);
  const int64_t p = options.devices;
  const int64_t m = options.microbatches;
  const int64_t v = schedule_chunks(options.name, options.chunks);
  const bool folded = options.name == "zb_v";
  PipelineSchedule schedule{.microbatches = m, .device_of = {}, .actions = {}};
  for (int64_t stage = 0; stage < p * v; ++stage) {
    schedule.device_of.push_back(folded && stage >= p ? 2 * p - 1 - stage : stage % p);
  }
  const bool split = folded || options.name == "zb_h1";
  const ActionKind backward = split ? ActionKind::input_gradient : ActionKind::backward;
  std::vector<int64_t> held;
  for (int64_t device = 0; device < p; ++device) {
    held.push_back(held_stages(options, device));
    if (folded) {
      schedule.actions.push_back(v_order(device, p, m));
    } else if (options.name == "interleaved") {
      schedule.actions.push_back(in_turns(interleaved(device, p, m, v), held.back() - 1));
    } else if (options.name == "gpipe") {
      schedule.actions.push_back(in_turns(one_stage(device, m, backward), m));
    } else {
      // Each further stage begins its backward pass one microbatch earlier.
      const int64_t ahead = std::min(held.back(), p - device) - 1;
      schedule.actions.push_back(in_turns(one_stage(device, m, backward), ahead));
    }
  }
  if (!split) return schedule;
  std::vector<StageCost> costs = options.costs;
  if (costs.empty()) costs.resize(static_cast<size_t>(p * v));
  return with_weight_gradients(schedule, costs, held);
}

PipelineSchedule make_schedule(const PipelineParallelOptions& options, int64_t devices,
                               const std::vector<StageCost>& costs,
                               std::optional<double> memory_limit) {
  if (!is_schedule_file(options.schedule)) {
    return make_schedule({.name = options.schedule,
                          .devices = devices,
                          .microbatches = options.microbatches,
                          .chunks = options.chunks,
                          .costs = costs,
                          .memory_limit = memory_limit});
  }
  const PipelineSchedule schedule = read_schedule_file(options.schedule);
  const int64_t chunks = options.chunks == 0 ? schedule.chunks() : options.chunks;
  if (schedule.devices() == devices && schedule.microbatches == options.microbatches &&
      schedule.chunks() == chunks) {
    if (memory_limit) {
      const std::vector<double> bounds(static_cast<size_t>(devices), *memory_limit);
      check_schedule(schedule, {.in_flight_bounds = bounds, .where = options.schedule});
    }
    return schedule;
  }
  throw ConfigError(options.schedule,
                    str("the schedule is for ", devices, " devices and ", options.microbatches,
                        " microbatches", options.chunks == 0 ? "" : str(", ", chunks, " chunks")),
                    str(schedule.devices(), " devices, ", schedule.microbatches, " microbatches, ",
                        schedule.chunks(), " chunks"),
                    "take the file's numbers, or another file");
}

std::vector<double> in_flight_bounds(const ScheduleOptions& options) {
  check_schedule_options(options);
  const auto chunks = static_cast<double>(schedule_chunks(options.name, options.chunks));
  std::vector<double> bounds;
  for (int64_t device = 0; device < options.devices; ++device) {
    bounds.push_back(static_cast<double>(held_stages(options, device)) / chunks);
  }
  return bounds;
}

}  // namespace tessera::detail
