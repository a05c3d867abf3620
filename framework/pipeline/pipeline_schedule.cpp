#include <tessera/framework/pipeline/pipeline_schedule.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

bool has_transfers(const PipelineSchedule& schedule) {
  for (const auto& device : schedule.actions) {
    if (!std::all_of(device.begin(), device.end(),
                     [](const PipelineAction& action) { return computes(action.kind); })) {
      return true;
    }
  }
  return false;
}

/// Whether stages `a` and `b` exist and are on different devices.
bool exchange(const PipelineSchedule& schedule, int64_t a, int64_t b) {
  if (std::min(a, b) < 0 || std::max(a, b) >= schedule.stages()) return false;
  return schedule.device_of[static_cast<size_t>(a)] != schedule.device_of[static_cast<size_t>(b)];
}

}  // namespace

const char* to_string(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "F";
    case ActionKind::input_gradient:
      return "I";
    case ActionKind::weight_gradient:
      return "W";
    case ActionKind::backward:
      return "B";
    case ActionKind::send_forward:
      return "SEND_F";
    case ActionKind::recv_forward:
      return "RECV_F";
    case ActionKind::send_backward:
      return "SEND_B";
    case ActionKind::recv_backward:
      return "RECV_B";
  }
  return "";
}

bool computes(ActionKind kind) { return kind <= ActionKind::backward; }

std::string to_string(const PipelineAction& action) {
  return str(action.stage, to_string(action.kind), action.microbatch);
}

PipelineSchedule with_transfers(PipelineSchedule schedule) {
  if (has_transfers(schedule)) return schedule;
  for (auto& device : schedule.actions) {
    std::vector<PipelineAction> all;
    for (const PipelineAction& action : device) {
      const auto [stage, kind, microbatch] = action;
      const bool forward = kind == ActionKind::forward;
      if (kind == ActionKind::weight_gradient) {
        all.push_back(action);
        continue;
      }
      const int64_t from = forward ? stage - 1 : stage + 1;
      const int64_t to = forward ? stage + 1 : stage - 1;
      if (exchange(schedule, stage, from)) {
        all.push_back(
            {stage, forward ? ActionKind::recv_forward : ActionKind::recv_backward, microbatch});
      }
      all.push_back(action);
      if (exchange(schedule, stage, to)) {
        all.push_back(
            {stage, forward ? ActionKind::send_forward : ActionKind::send_backward, microbatch});
      }
    }
    device = std::move(all);
  }
  return schedule;
}

PipelineSchedule without_transfers(PipelineSchedule schedule) {
  for (auto& device : schedule.actions) {
    std::erase_if(device, [](const PipelineAction& action) { return !computes(action.kind); });
  }
  return schedule;
}

}  // namespace tessera::detail
