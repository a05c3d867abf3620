#pragma once

#include <cstddef>
#include <string>

#include <tessera/framework/training/step_plan.hpp>

namespace tessera::detail {

/// Returns the device with the largest peak of a plan that has peaks.
size_t fullest_device(const StepPlan& plan);

/// Describes what a device holds at its peak, without uses of 0 bytes: "weights 1.5 MB, slots 3.0
/// MB, activations 12.0 MB".
std::string parts_text(const StepPlan::Peak& peak);

/// Describes the peak of the fullest device: "1.5 MB on device 0 in hidden/kernel (weights 0.5 MB,
/// activations 1.0 MB)". Empty for a plan without devices.
std::string peak_text(const StepPlan& plan);

/// Describes what the fullest device of a plan holds at its peak, and its largest layers.
std::string memory_text(const StepPlan& plan);

/// Returns what to do about a step that does not fit in memory.
std::string memory_advice();

}  // namespace tessera::detail
