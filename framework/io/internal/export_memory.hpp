#pragma once

#include <optional>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/model/internal/activation_peak.hpp>

namespace tessera::detail {

/// Bytes that the values of a call may hold: `option`, or without one half of the memory that is
/// available now, 256 MiB at least. On GPUs, and on a mesh of several processes, which would have
/// to agree, without an option any number.
double max_activation_bytes(const std::optional<int64_t>& option, const LayoutMap& layouts);

/// What ExportedModel::predict() of an input of this shape holds at one time, looking no further
/// once it is more than `enough`. Throws ShapeError for one that does not fit.
ActivationPeak predict_peak(const ExportedModel& exported, const Shape& input, double enough);

/// "(2, 3) of layer hidden, with which there would be 16.00 GB": what is received.
std::string peak_text(const ActivationPeak& peak);

}  // namespace tessera::detail
