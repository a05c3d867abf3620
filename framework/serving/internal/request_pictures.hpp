#pragma once

#include <optional>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

namespace tessera::detail {

/// Decodes the pictures of a request, files in base64, for inputs that take pictures: (-1, height,
/// width, channels) with 1, 3 or 4 channels. Their values are 0 to 255. Returns the error response
/// if one is damaged or of another size.
std::optional<HttpResponse> decode_pictures(PredictRequest& request, const ExportedModel& model);

}  // namespace tessera::detail
