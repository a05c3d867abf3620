#pragma once

#include <optional>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/model/internal/activation_peak.hpp>

namespace tessera::detail {

/// Returns the maximum activation memory of a call in bytes: `option`, or by default half of the
/// memory that is available now, at least 256 MiB. Without an option it is unlimited on GPUs and on
/// meshes of several processes, which would have to agree on it.
double max_activation_bytes(const std::optional<int64_t>& option, const LayoutMap& layouts);

/// Returns the peak activation memory of ExportedModel::predict_all() for inputs of these shapes.
/// Stops counting once it exceeds `limit`. Throws ShapeError for a shape that does not fit.
ActivationPeak predict_peak(const ExportedModel& exported, const Shapes& inputs, double limit);

/// Formats a peak for errors: "(2, 3) of layer hidden, a total of 16.00 GB".
std::string peak_text(const ActivationPeak& peak);

}  // namespace tessera::detail
