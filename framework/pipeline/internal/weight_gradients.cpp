#include <tessera/framework/pipeline/internal/weight_gradients.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/pipeline/internal/action_times.hpp>

namespace tessera::detail {
namespace {

class WeightGradientFiller {
 public:
  WeightGradientFiller(const PipelineSchedule& schedule, const std::vector<StageCost>& costs,
                       const std::vector<int64_t>& held)
      : schedule_(schedule),
        costs_(costs),
        held_(held),
        times_(schedule),
        devices_(schedule.actions.size()) {}

  PipelineSchedule run() {
    PipelineSchedule filled = schedule_;
    while (const auto device = next_device()) step(*device);
    for (size_t d = 0; d < devices_.size(); ++d) filled.actions[d] = devices_[d].done;
    return filled;
  }

 private:
  struct Device {
    double free = 0;                     ///< when its last action ends
    size_t next = 0;                     ///< position in the given order
    int64_t held = 0;                    ///< stages' activations
    bool waits = false;                  ///< for an action that is not placed yet
    std::deque<PipelineAction> pending;  ///< weight gradients
    std::vector<PipelineAction> done;
  };

  /// The device that is free first, of those that do not wait for another.
  std::optional<size_t> next_device() const {
    std::optional<size_t> first;
    bool left = false;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const Device& device = devices_[d];
      if (device.next == schedule_.actions[d].size() && device.pending.empty()) continue;
      left = true;
      if (!device.waits && (!first || device.free < devices_[*first].free)) first = d;
    }
    if (left && !first) throw StateError("pipeline", "the order has no cycle", "one", "");
    return first;
  }

  void step(size_t d) {
    Device& device = devices_[d];
    const auto& order = schedule_.actions[d];
    if (device.next == order.size()) return place_pending(d);
    const PipelineAction& action = order[device.next];
    const bool forward = action.kind == ActionKind::forward;
    if (forward && device.held == held_[d]) return place_pending(d);
    const auto ready = times_.ready(action);
    // A gap that is shorter than half of the gradient would delay the others by more.
    const double wait = ready ? *ready - device.free : std::numeric_limits<double>::infinity();
    if (wait > 0 && !device.pending.empty()) {
      const double cost = cost_of(device.pending.front());
      if (2 * wait >= cost) return place_pending(d);
    }
    if (!ready) {
      device.waits = true;
      return;
    }
    ++device.next;
    device.held += forward ? 1 : 0;
    place(d, action, std::max(*ready, device.free));
    if (!forward)
      device.pending.push_back({action.stage, ActionKind::weight_gradient, action.microbatch});
  }

  void place_pending(size_t d) {
    Device& device = devices_[d];
    if (device.pending.empty()) {
      throw StateError("pipeline", "a device holds fewer activations than its order needs",
                       str("device ", d), "");
    }
    const PipelineAction action = device.pending.front();
    device.pending.pop_front();
    --device.held;
    place(d, action, device.free);
  }

  void place(size_t d, const PipelineAction& action, double start) {
    devices_[d].done.push_back(action);
    devices_[d].free = start + cost_of(action);
    times_.set(action, devices_[d].free);
    for (Device& device : devices_) device.waits = false;
  }

  double cost_of(const PipelineAction& action) const {
    return action_cost(action.kind, costs_[static_cast<size_t>(action.stage)]);
  }

  const PipelineSchedule& schedule_;
  const std::vector<StageCost>& costs_;
  const std::vector<int64_t>& held_;
  ActionTimes times_;
  std::vector<Device> devices_;
};

}  // namespace

PipelineSchedule with_weight_gradients(const PipelineSchedule& schedule,
                                       const std::vector<StageCost>& costs,
                                       const std::vector<int64_t>& held) {
  return WeightGradientFiller(schedule, costs, held).run();
}

}  // namespace tessera::detail
