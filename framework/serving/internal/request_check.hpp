#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

namespace tessera::detail {

/// Returns whether two requests can share a batch.
bool share_batch(const PredictRequest& a, const PredictRequest& b);

/// Returns the error response to a request whose inputs do not fit the model: their names, dtypes
/// and shapes, as they were sent. `signature` identifies the names of the model's inputs.
std::optional<HttpResponse> wrong_request(const PredictRequest& request, const ExportedModel& model,
                                          size_t signature);

/// Throws StateError if the outputs are not finite because a weight of the model is not, as after a
/// diverged training; ConfigError for any other infinite or NaN element.
void check_finite(const std::vector<at::Tensor>& outputs, const ExportedModel& model);

}  // namespace tessera::detail
