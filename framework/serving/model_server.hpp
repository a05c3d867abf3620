#pragma once

#include <string>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/internal/model_worker.hpp>

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

  int port() const { return server_.port(); }
  std::shared_ptr<const ServedModel> served() const { return worker_.served(); }
  /// Serves until stop() or a signal, then drains, as HttpServer::run() does.
  void run() { server_.run(); }
  void stop() { server_.stop(); }

 private:
  std::optional<detail::HttpResponse> refuse(const std::string& method,
                                             const std::string& target) override;
  void handle(detail::HttpRequest&& request, detail::HttpRespond respond) override;
  void drain() override { worker_.hurry(); }
  detail::HttpResponse describe(const detail::HttpRequest& request) const;

  std::string name_;
  detail::PredictLimits limits_;
  detail::HttpServer server_;
  // Declared after the server, whose requests it answers, so that it is destroyed first.
  detail::ModelWorker worker_;
};

}  // namespace tessera
