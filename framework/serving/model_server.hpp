#pragma once

#include <string>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/internal/model_worker.hpp>

namespace tessera {

/// The options of ModelServer.
struct ModelServerOptions {
  std::string name = "model";              ///< what the paths of requests call the model
  detail::ModelWorkerOptions worker = {};  ///< batches, looks for newer versions, layouts
  detail::HttpServerOptions http = {};     ///< address, limits and time-outs of the connections
};

/// Serves the exports of a folder over HTTP as TensorFlow Serving's REST interface does:
///
///     POST /v1/models/NAME:predict  {"instances": ["a text"]}  ->  {"predictions": [[0.2, 0.8]]}
///     GET  /v1/models/NAME, /v1/models/NAME/metadata, /healthz
///
/// and the same with /versions/N after the name. Classifiers with labels answer them too, under
/// "labels".
class ModelServer : private detail::HttpHandler {
 public:
  /// Loads the newest version and listens. Throws FileError, ConfigError.
  ModelServer(const std::string& folder, const ModelServerOptions& options);

  int port() const { return server_.port(); }
  std::shared_ptr<const detail::ServedModel> served() const { return worker_.served(); }
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
  // After the server, whose answers it gives, so that it ends first.
  detail::ModelWorker worker_;
};

}  // namespace tessera
