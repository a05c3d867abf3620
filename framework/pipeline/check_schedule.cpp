#include <tessera/framework/pipeline/check_schedule.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <tessera/framework/pipeline/internal/action_times.hpp>

namespace tessera::detail {
namespace {

constexpr size_t kinds = 8;

ActionKind other_end(ActionKind kind) {
  switch (kind) {
    case ActionKind::send_forward:
      return ActionKind::recv_forward;
    case ActionKind::recv_forward:
      return ActionKind::send_forward;
    case ActionKind::send_backward:
      return ActionKind::recv_backward;
    default:
      return ActionKind::send_backward;
  }
}

bool sends(ActionKind kind) {
  return kind == ActionKind::send_forward || kind == ActionKind::send_backward;
}

bool of_forward_pass(ActionKind kind) {
  return kind == ActionKind::send_forward || kind == ActionKind::recv_forward;
}

/// Returns the send of a receive, or the receive of a send.
PipelineAction counterpart(const PipelineAction& action) {
  const bool next =
      action.kind == ActionKind::send_forward || action.kind == ActionKind::recv_backward;
  return {action.stage + (next ? 1 : -1), other_end(action.kind), action.microbatch};
}

class ScheduleCheck {
 public:
  ScheduleCheck(const PipelineSchedule& schedule, const ScheduleChecks& checks)
      : schedule_(schedule), checks_(checks) {}

  void run() {
    check_shape();
    index_actions();
    check_complete();
    schedule_ = with_transfers(std::move(schedule_));
    index_actions();
    for (int64_t device = 0; device < schedule_.devices(); ++device) check_order(device);
    check_transfer_order();
    check_in_flight();
    check_cycles();
  }

 private:
  [[noreturn]] void fail(ScheduleFault fault, int64_t device, const PipelineAction& action,
                         const std::string& rule, const std::string& received,
                         const std::string& fix) const {
    throw ScheduleError(fault, device, action,
                        str(checks_.where, ": device ", device, ", stage ", action.stage,
                            ", microbatch ", action.microbatch),
                        rule, received, fix);
  }

  [[noreturn]] void fail_shape(const std::string& rule, const std::string& received) const {
    throw ScheduleError(ScheduleFault::shape, 0, {}, checks_.where, rule, received, "");
  }

  int64_t device_of(int64_t stage) const { return schedule_.device_of[static_cast<size_t>(stage)]; }

  const std::vector<PipelineAction>& actions_of(int64_t device) const {
    return schedule_.actions[static_cast<size_t>(device)];
  }

  /// The position of an action in its device's list, -1 if it is not there.
  int64_t& position(const PipelineAction& action) {
    const int64_t pair = action.stage * schedule_.microbatches + action.microbatch;
    return positions_[static_cast<size_t>(pair)][static_cast<size_t>(action.kind)];
  }

  bool has(int64_t stage, ActionKind kind, int64_t microbatch) {
    return position({stage, kind, microbatch}) >= 0;
  }

  void check_shape() const {
    const int64_t devices = schedule_.devices();
    if (devices < 1 || schedule_.stages() < 1 || schedule_.microbatches < 1) {
      fail_shape("a schedule has devices, stages and microbatches",
                 str(devices, " devices, ", schedule_.stages(), " stages, ", schedule_.microbatches,
                     " microbatches"));
    }
    std::vector<int64_t> counts(static_cast<size_t>(devices), 0);
    for (int64_t stage = 0; stage < schedule_.stages(); ++stage) {
      if (device_of(stage) < 0 || device_of(stage) >= devices) {
        fail_shape(str("stage ", stage, " is on one of ", devices, " devices"),
                   str("device ", device_of(stage)));
      }
      ++counts[static_cast<size_t>(device_of(stage))];
    }
    for (size_t d = 0; d < counts.size(); ++d) {
      if (counts[d] == counts[0]) continue;
      fail_shape("all devices hold the same number of stages",
                 str(counts[0], " on device 0, ", counts[d], " on device ", d));
    }
  }

  void index_actions() {
    std::array<int64_t, kinds> none;
    none.fill(-1);
    positions_.assign(static_cast<size_t>(schedule_.stages() * schedule_.microbatches), none);
    for (int64_t device = 0; device < schedule_.devices(); ++device) {
      int64_t at = 0;
      for (const PipelineAction& action : actions_of(device)) {
        const auto [stage, kind, microbatch] = action;
        if (stage < 0 || stage >= schedule_.stages() || microbatch < 0 ||
            microbatch >= schedule_.microbatches) {
          fail(ScheduleFault::unknown, device, action,
               str("a schedule of ", schedule_.stages(), " stages and ", schedule_.microbatches,
                   " microbatches has no others"),
               to_string(action), "remove it");
        }
        if (device_of(stage) != device) {
          fail(ScheduleFault::wrong_device, device, action,
               str("stage ", stage, " is on device ", device_of(stage)), to_string(action),
               "move it there");
        }
        if (position(action) >= 0) {
          fail(ScheduleFault::repeated, device, action, "a schedule has each action once",
               to_string(action) + " twice", "remove one of the two");
        }
        position(action) = at++;
      }
    }
  }

  void check_complete() {
    for (int64_t stage = 0; stage < schedule_.stages(); ++stage) {
      for (int64_t i = 0; i < schedule_.microbatches; ++i) check_pair(stage, i);
    }
  }

  void check_pair(int64_t stage, int64_t microbatch) {
    const bool full = has(stage, ActionKind::backward, microbatch);
    const auto check_there = [&](ActionKind kind) {
      if (has(stage, kind, microbatch)) return;
      const PipelineAction action{stage, kind, microbatch};
      fail(ScheduleFault::missing, device_of(stage), action,
           "a stage computes F, and B or both I and W, of each microbatch",
           "no " + to_string(action), "add it");
    };
    check_there(ActionKind::forward);
    for (const ActionKind kind : {ActionKind::input_gradient, ActionKind::weight_gradient}) {
      if (full && has(stage, kind, microbatch)) {
        fail(ScheduleFault::mixed_backward, device_of(stage), {stage, kind, microbatch},
             "a backward pass is B, or I and W",
             to_string(PipelineAction{stage, ActionKind::backward, microbatch}) + " and " +
                 to_string(PipelineAction{stage, kind, microbatch}),
             "remove one of the two");
      }
      if (!full) {
        const bool any = has(stage, ActionKind::input_gradient, microbatch) ||
                         has(stage, ActionKind::weight_gradient, microbatch);
        check_there(any ? kind : ActionKind::backward);
      }
    }
  }

  /// Returns what an action needs, with the kind of the backward pass that the schedule has.
  std::optional<PipelineAction> needed(const PipelineAction& action) {
    auto other = needed_action(action, schedule_.stages());
    if (other && other->kind == ActionKind::input_gradient && position(*other) < 0) {
      other->kind = ActionKind::backward;
    }
    return other;
  }

  void check_before(int64_t device, const PipelineAction& first, const PipelineAction& second) {
    if (position(first) < position(second)) return;
    fail(ScheduleFault::order, device, second, "an action comes after those whose results it needs",
         to_string(second) + " before " + to_string(first), "exchange the two");
  }

  void check_order(int64_t device) {
    const auto& actions = actions_of(device);
    for (const PipelineAction& action : actions) {
      if (!computes(action.kind)) {
        check_transfer(device, action);
        continue;
      }
      const auto other = needed(action);
      if (action.kind != ActionKind::forward) {
        check_before(device, {action.stage, ActionKind::forward, action.microbatch}, action);
      }
      if (other && device_of(other->stage) == device) check_before(device, *other, action);
      check_transfers_of(device, action, other);
    }
  }

  /// Checks that the action's operand is received and its result is sent, if that is necessary.
  void check_transfers_of(int64_t device, const PipelineAction& action,
                          const std::optional<PipelineAction>& operand) {
    const bool forward = action.kind == ActionKind::forward;
    const auto check_there = [&](ActionKind kind) {
      const PipelineAction transfer{action.stage, kind, action.microbatch};
      if (position(transfer) >= 0) return;
      fail(ScheduleFault::transfer, device, transfer,
           "stages of different devices exchange their results", "no " + to_string(transfer),
           "add it, or leave out all sends and receives: they are added");
    };
    if (action.kind == ActionKind::weight_gradient) return;
    if (operand && device_of(operand->stage) != device) {
      check_there(forward ? ActionKind::recv_forward : ActionKind::recv_backward);
    }
    const int64_t to = action.stage + (forward ? 1 : -1);
    if (to >= 0 && to < schedule_.stages() && device_of(to) != device) {
      check_there(forward ? ActionKind::send_forward : ActionKind::send_backward);
    }
  }

  void check_transfer(int64_t device, const PipelineAction& transfer) {
    const PipelineAction end = counterpart(transfer);
    if (end.stage < 0 || end.stage >= schedule_.stages() || device_of(end.stage) == device) {
      fail(ScheduleFault::transfer, device, transfer,
           "stages of different devices exchange their results", to_string(transfer), "remove it");
    }
    const bool forward = of_forward_pass(transfer.kind);
    PipelineAction action{transfer.stage, ActionKind::forward, transfer.microbatch};
    if (!forward) {
      action.kind = ActionKind::backward;
      if (position(action) < 0) action.kind = ActionKind::input_gradient;
    }
    const int64_t at = position(transfer);
    if (sends(transfer.kind)) {
      if (position(action) < at) return;
      fail(ScheduleFault::transfer, device, transfer, "a result is sent after it is computed",
           to_string(transfer) + " before " + to_string(action), "exchange the two");
    }
    if (position(action) < at) {
      fail(ScheduleFault::transfer, device, transfer, "an operand is received before it is needed",
           to_string(transfer) + " after " + to_string(action), "exchange the two");
    }
    if (position(action) == at + 1) return;
    const PipelineAction& next = actions_of(device)[static_cast<size_t>(at + 1)];
    fail(ScheduleFault::early_receive, device, transfer,
         "a device waits for an operand only before the action that needs it",
         to_string(transfer) + " before " + to_string(next), "move it before " + to_string(action));
  }

  void check_transfer_order() const {
    /// Two devices, sender first, and whether the forward pass is meant.
    using Edge = std::tuple<int64_t, int64_t, bool>;
    std::map<Edge, std::vector<PipelineAction>> sent;
    std::map<Edge, std::vector<PipelineAction>> received;
    for (int64_t device = 0; device < schedule_.devices(); ++device) {
      for (const PipelineAction& action : actions_of(device)) {
        if (computes(action.kind)) continue;
        const int64_t other = device_of(counterpart(action).stage);
        const bool forward = of_forward_pass(action.kind);
        if (sends(action.kind)) {
          sent[{device, other, forward}].push_back(counterpart(action));
        } else {
          received[{other, device, forward}].push_back(action);
        }
      }
    }
    for (const auto& [edge, order] : received) {
      const auto& sent_order = sent[edge];
      for (size_t i = 0; i < order.size(); ++i) {
        if (order[i] == sent_order[i]) continue;
        fail(ScheduleFault::transfer_order, std::get<1>(edge), order[i],
             str("device ", std::get<1>(edge), " receives in the order in which device ",
                 std::get<0>(edge), " sends"),
             str(to_string(order[i]), " as number ", i + 1, ", where ",
                 to_string(counterpart(sent_order[i])), " is sent"),
             "let both devices take them in one order");
      }
    }
  }

  void check_in_flight() const {
    if (checks_.in_flight_bounds.empty()) return;
    if (checks_.in_flight_bounds.size() != schedule_.actions.size()) {
      fail_shape("a bound in flight is given for each device",
                 str(checks_.in_flight_bounds.size(), " bounds"));
    }
    const auto chunks = static_cast<double>(schedule_.chunks());
    for (int64_t device = 0; device < schedule_.devices(); ++device) {
      const double bound = checks_.in_flight_bounds[static_cast<size_t>(device)];
      int64_t held = 0;
      for (const PipelineAction& action : actions_of(device)) {
        if (action.kind == ActionKind::forward) ++held;
        if (static_cast<double>(held) > bound * chunks + 1e-9) {
          fail(ScheduleFault::in_flight, device, action,
               str("the device holds activations of at most ", bound, " microbatches"),
               str(static_cast<double>(held) / chunks, " in ", to_string(action)),
               "finish the backward pass of one before");
        }
        if (ends_activation(action.kind)) --held;
      }
    }
  }

  static bool ends_activation(ActionKind kind) {
    return kind == ActionKind::backward || kind == ActionKind::weight_gradient;
  }

  /// Runs the devices as far as they get: only a receive waits, for its send.
  void check_cycles() {
    std::vector<size_t> next(schedule_.actions.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t d = 0; d < next.size(); ++d) {
        const auto& actions = schedule_.actions[d];
        while (next[d] < actions.size() && can_run(actions[next[d]], next)) {
          ++next[d];
          moved = true;
        }
      }
    }
    for (size_t d = 0; d < next.size(); ++d) {
      if (next[d] < schedule_.actions[d].size()) fail_cycle(d, next);
    }
  }

  /// Throws the error of a cycle, to which the devices lead that device `d` waits for.
  [[noreturn]] void fail_cycle(size_t d, const std::vector<size_t>& next) const {
    const auto waiting = [&](size_t device) { return schedule_.actions[device][next[device]]; };
    const auto awaited = [&](size_t device) {
      return static_cast<size_t>(device_of(counterpart(waiting(device)).stage));
    };
    for (size_t hops = 0; hops < next.size(); ++hops) d = awaited(d);
    const PipelineAction action = waiting(d);
    fail(ScheduleFault::cycle, static_cast<int64_t>(d), action, "no devices wait for each other",
         str(to_string(action), " waits for ", to_string(counterpart(action)), " of device ",
             awaited(d), ", which waits in ", to_string(waiting(awaited(d)))),
         "move the actions that the others wait for to the front");
  }

  bool can_run(const PipelineAction& action, const std::vector<size_t>& next) {
    if (computes(action.kind) || sends(action.kind)) return true;
    const PipelineAction send = counterpart(action);
    return position(send) < static_cast<int64_t>(next[static_cast<size_t>(device_of(send.stage))]);
  }

  PipelineSchedule schedule_;
  const ScheduleChecks& checks_;
  std::vector<std::array<int64_t, kinds>> positions_;
};

}  // namespace

void check_schedule(const PipelineSchedule& schedule, const ScheduleChecks& checks) {
  ScheduleCheck(schedule, checks).run();
}

}  // namespace tessera::detail
