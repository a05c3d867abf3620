#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/serving/http/http_server.hpp>

namespace tessera::detail {

/// What a request to a model server asks for.
enum class ModelAction : uint8_t { predict, status, metadata, health };

struct ModelRoute {
  ModelAction action = ModelAction::health;
  std::optional<int64_t> version = std::nullopt;  ///< the one asked for by number
};

/// Reads a target of TensorFlow Serving's REST interface, for the model of this name:
/// /v1/models/NAME[/versions/N][:predict|/metadata], and /healthz. What follows a '?' is ignored.
/// Nothing for any other.
std::optional<ModelRoute> parse_model_route(const std::string& target, const std::string& name);

/// The refusal of a target that is none (404) or of a method that it does not take (405).
std::optional<HttpResponse> refuse_route(const std::string& method, const std::string& target,
                                         const std::string& name);

}  // namespace tessera::detail
