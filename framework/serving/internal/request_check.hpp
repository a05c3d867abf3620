#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/predict_reply.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

namespace tessera::detail {

/// Returns whether two requests can share a batch.
bool share_batch(const PredictRequest& a, const PredictRequest& b);

/// Returns the error response to a request whose inputs do not fit the model: their names, dtypes
/// and shapes, as they were sent. `signature` identifies the names of the model's inputs.
std::optional<HttpResponse> wrong_request(const PredictRequest& request, const ExportedModel& model,
                                          size_t signature);

/// Returns whether all elements of the predictions for a request are finite.
bool are_finite(std::span<const PredictOutput> outputs);

/// Throws the error for predictions that are not finite: StateError if a weight of the model is
/// not, as after a diverged training; ConfigError otherwise.
[[noreturn]] void fail_non_finite(const ExportedModel& model);

}  // namespace tessera::detail
