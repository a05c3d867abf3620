#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::detail {

/// The kinds of a pipeline's actions, with their letters in PyTorch's format.
enum class ActionKind : uint8_t {
  forward,          ///< F
  input_gradient,   ///< I: the gradients that the stage before needs
  weight_gradient,  ///< W: the gradients of the stage's weights
  backward,         ///< B: I and W at once
  send_forward,     ///< SEND_F: sends the result of F to the next stage
  recv_forward,     ///< RECV_F: waits for the result of F of the stage before
  send_backward,    ///< SEND_B: sends the result of I or B to the stage before
  recv_backward     ///< RECV_B: waits for the result of I or B of the next stage
};

/// Returns the letters of a kind: "F", "SEND_F".
const char* to_string(ActionKind kind);

/// Whether the kind computes, and does not send or receive.
bool computes(ActionKind kind);

/// An action of one stage on one microbatch.
struct PipelineAction {
  int64_t stage = 0;
  ActionKind kind = ActionKind::forward;
  int64_t microbatch = 0;
  bool operator==(const PipelineAction&) const = default;
};

/// Returns an action as PyTorch writes it: "3F0", "2SEND_F1".
std::string to_string(const PipelineAction& action);

/// The order in which each device computes its stages for each microbatch. Stages are numbered in
/// the order in which a microbatch passes through them; devices by their position in the mesh
/// dimension of stages.
struct PipelineSchedule {
  int64_t microbatches = 0;
  std::vector<int64_t> device_of;                    ///< device of each stage
  std::vector<std::vector<PipelineAction>> actions;  ///< by device, in order
  int64_t devices() const { return static_cast<int64_t>(actions.size()); }
  int64_t stages() const { return static_cast<int64_t>(device_of.size()); }
  /// Stages of each device.
  int64_t chunks() const { return stages() / devices(); }
  bool operator==(const PipelineSchedule&) const = default;
};

/// Returns the schedule with sends and receives: a result is sent after the action that computes
/// it, and waited for before the action that needs it. A schedule that has some is returned as it
/// is. Stages on one device exchange nothing.
PipelineSchedule with_transfers(PipelineSchedule schedule);

/// Returns the schedule without sends and receives.
PipelineSchedule without_transfers(PipelineSchedule schedule);

}  // namespace tessera::detail
