#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera::detail {

/// Returns whether the variables of an optimizer are in the order of Keras up to 2.10: the step,
/// and then slot by slot those of all weights.
bool has_legacy_slots(const std::vector<KerasData>& data);

/// Matches an optimizer's step and slots with such data: slots by the end of their names ("m:0",
/// "rms:0") or, if they have none ("Variable_3:0"), by their order. `slots` are those that the
/// optimizer keeps of each weight, in the weights' order. Ignores what the optimizer does not keep.
/// Returns nothing if a slot is missing.
std::optional<std::vector<KerasMatch>> match_legacy_slots(
    const std::vector<KerasData>& data, const std::string& optimizer_class, const KerasValue& steps,
    const std::vector<std::vector<Variable>>& slots);

}  // namespace tessera::detail
