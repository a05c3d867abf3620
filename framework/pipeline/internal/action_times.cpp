#include <tessera/framework/pipeline/internal/action_times.hpp>

namespace tessera::detail {
namespace {

constexpr double not_yet = -1;

}  // namespace

double action_cost(ActionKind kind, const StageCost& cost) {
  switch (kind) {
    case ActionKind::forward:
      return cost.forward;
    case ActionKind::input_gradient:
      return cost.input_gradient;
    case ActionKind::weight_gradient:
      return cost.weight_gradient;
    case ActionKind::backward:
      return cost.input_gradient + cost.weight_gradient;
    default:
      return 0;
  }
}

std::optional<PipelineAction> needed_action(const PipelineAction& action, int64_t stages) {
  const auto [stage, kind, microbatch] = action;
  if (kind == ActionKind::forward) {
    if (stage == 0) return std::nullopt;
    return PipelineAction{stage - 1, ActionKind::forward, microbatch};
  }
  if (kind == ActionKind::weight_gradient) {
    return PipelineAction{stage, ActionKind::input_gradient, microbatch};
  }
  if (stage + 1 == stages) return PipelineAction{stage, ActionKind::forward, microbatch};
  return PipelineAction{stage + 1, ActionKind::input_gradient, microbatch};
}

ActionTimes::ActionTimes(const PipelineSchedule& schedule)
    : stages_(schedule.stages()),
      microbatches_(schedule.microbatches),
      ends_(static_cast<size_t>(2 * stages_ * microbatches_), not_yet) {}

size_t ActionTimes::index_of(const PipelineAction& action) const {
  const int64_t pass = action.kind == ActionKind::forward ? 0 : 1;
  return static_cast<size_t>((pass * stages_ + action.stage) * microbatches_ + action.microbatch);
}

void ActionTimes::set(const PipelineAction& action, double end) {
  if (action.kind != ActionKind::weight_gradient) ends_[index_of(action)] = end;
}

std::optional<double> ActionTimes::ready(const PipelineAction& action) const {
  const auto needed = needed_action(action, stages_);
  if (!needed) return 0;
  const double end = ends_[index_of(*needed)];
  if (end == not_yet) return std::nullopt;
  return end;
}

}  // namespace tessera::detail
