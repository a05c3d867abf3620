#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/pipeline/make_schedule.hpp>

namespace tessera::detail {

/// Adds the weight gradients (W) to a schedule of forward actions and input gradients: each in the
/// first gap in which its device would wait for another, or when the device holds the activations
/// of `held[device]` stages, or at the end. Device after device, the earliest first.
PipelineSchedule with_weight_gradients(const PipelineSchedule& schedule,
                                       const std::vector<StageCost>& costs,
                                       const std::vector<int64_t>& held);

}  // namespace tessera::detail
