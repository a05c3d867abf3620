#pragma once

#include <optional>
#include <string_view>

#include <tessera/framework/serving/http/predict_request.hpp>

namespace tessera::detail {

/// Parses the most frequent body of a request, several times faster than the general parser:
/// {"instances": LISTS} or {"inputs": LISTS} for a model with one input, where LISTS are nested
/// lists of numbers of one shape. Returns nothing for any other body, valid or not: the general
/// parser reads or refuses it. The numbers are those that it would read.
std::optional<PredictRequest> parse_number_lists(std::string_view body,
                                                 const PredictLimits& limits);

}  // namespace tessera::detail
