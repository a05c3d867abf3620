#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/framework/pipeline/make_schedule.hpp>

namespace tessera::detail {

/// Returns the time of an action: "B" takes that of "I" and "W".
double action_cost(ActionKind kind, const StageCost& cost);

/// Returns the action whose result an action needs; nothing for the forward action of the first
/// stage. The backward pass of the last stage needs its forward action; a weight gradient the input
/// gradient of its stage. `kind` input_gradient stands for backward too.
std::optional<PipelineAction> needed_action(const PipelineAction& action, int64_t stages);

/// When forward actions, and input gradients or backward actions, of a schedule end.
class ActionTimes {
 public:
  explicit ActionTimes(const PipelineSchedule& schedule);
  /// Sets when an action ends; weight gradients are ignored, because nothing waits for them.
  void set(const PipelineAction& action, double end);
  /// Returns the end of what an action needs, 0 if that is nothing; no value if it is not set yet.
  std::optional<double> ready(const PipelineAction& action) const;

 private:
  size_t index_of(const PipelineAction& action) const;
  int64_t stages_;
  int64_t microbatches_;
  std::vector<double> ends_;
};

}  // namespace tessera::detail
