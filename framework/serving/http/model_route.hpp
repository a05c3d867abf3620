#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tessera/framework/serving/http/http_server.hpp>

namespace tessera::detail {

/// The action that a request to a model server asks for.
enum class ModelAction : uint8_t { predict, status, metadata, health };

struct ModelRoute {
  ModelAction action = ModelAction::health;
  std::string name = {};                          ///< the model; empty for ModelAction::health
  std::optional<int64_t> version = std::nullopt;  ///< the requested version, if any
};

/// Parses a target of TensorFlow Serving's REST API:
/// /v1/models/NAME[/versions/N][:predict|/metadata], or /healthz. Ignores a query ('?' and after).
/// Returns nothing for any other target.
std::optional<ModelRoute> parse_model_route(const std::string& target);

/// Returns the error response for a target that is unknown or names none of these models (404), or
/// a method that it does not support (405).
std::optional<HttpResponse> refuse_route(const std::string& method, const std::string& target,
                                         std::span<const std::string> names);

}  // namespace tessera::detail
