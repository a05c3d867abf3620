#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/model_handler.hpp>
#include <tessera/framework/serving/model_worker_options.hpp>

namespace tessera {

/// The options of ModelServer.
struct ModelServerOptions {
  std::string name = "model";      ///< the model's name in request paths
  ModelWorkerOptions worker = {};  ///< batches, polling for newer versions, layouts
  HttpServerOptions http = {};     ///< address, limits and timeouts of connections
};

/// Serves the exports of a folder over HTTP through TensorFlow Serving's REST API:
///
///     POST /v1/models/NAME:predict  {"instances": ["a text"]}  ->  {"predictions": [[0.2, 0.8]]}
///     GET  /v1/models/NAME, /v1/models/NAME/metadata, /healthz
///
/// and these paths with /versions/N after the name. Classifiers that have labels also return them,
/// under "labels".
class ModelServer : private detail::HttpHandler {
 public:
  /// Loads the newest version and listens. Throws FileError, ConfigError.
  ModelServer(const std::string& folder, const ModelServerOptions& options);
  /// Listens, and passes the requests for the model of this name on. Throws ConfigError, FileError.
  ModelServer(std::unique_ptr<detail::ModelHandler> model, const std::string& name,
              const HttpServerOptions& http);
  ~ModelServer() override;

  int port() const { return server_.port(); }
  /// Returns the version in service; null if the model is not an export.
  std::shared_ptr<const ServedModel> served() const;
  /// Serves until stop() or a signal, then drains, as HttpServer::run() does.
  void run() { server_.run(); }
  /// Makes run() drain and return. Thread-safe.
  void stop() { server_.stop(); }

 private:
  std::optional<detail::HttpResponse> refuse(const std::string& method,
                                             const std::string& target) override;
  void handle(detail::HttpRequest&& request, detail::HttpRespond respond) override;
  void drain() override;

  std::string name_;
  detail::HttpServer server_;
  // Declared after the server, whose requests it answers, so that it is destroyed first.
  std::unique_ptr<detail::ModelHandler> model_;
};

}  // namespace tessera
