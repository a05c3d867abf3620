#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/http/model_route.hpp>
#include <tessera/framework/serving/model_worker_options.hpp>

namespace tessera {

namespace detail {

/// Interface of the model behind a ModelServer. All functions are called on the thread of
/// ModelServer::run().
class ModelHandler {
 public:
  virtual ~ModelHandler() = default;
  /// Answers a predict request, now or later; soon if it is abandoned. A RequestError becomes its
  /// status, a ConfigError status 400, any other exception status 500.
  virtual void predict(HttpRequest&& request, std::optional<int64_t> version,
                       HttpRespond respond) = 0;
  /// Answers a request for the status, the metadata or the health of the model.
  virtual HttpResponse describe(const ModelRoute& route, const HttpRequest& request) const = 0;
  /// Called once when the server begins to drain: pending requests should be answered soon.
  virtual void drain() {}
  /// Returns the version in service; null if the model is not an export. Thread-safe.
  virtual std::shared_ptr<const ServedModel> served() const { return nullptr; }
  /// Returns how often the model was called; zeros if it is not an export. Thread-safe.
  virtual WorkerRecords records() const { return {}; }
};

}  // namespace detail

}  // namespace tessera
