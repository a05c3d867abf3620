#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/serving/http/http_server.hpp>
#include <tessera/framework/serving/model_handler.hpp>
#include <tessera/framework/serving/model_worker_options.hpp>

namespace tessera {

/// A model of a ModelServer: its name in request paths, and the folder of its exports.
struct NamedExport {
  std::string name;
  std::string folder;
};

/// The options of ModelServer.
struct ModelServerOptions {
  std::string name = "model";      ///< the name of a single model in request paths
  ModelWorkerOptions worker = {};  ///< batches, polling for newer versions, layouts
  HttpServerOptions http = {};     ///< address, limits and timeouts of connections
};

/// Serves the exports of one folder or several over HTTP through TensorFlow Serving's REST API:
///
///     POST /v1/models/NAME:predict  {"instances": ["a text"]}  ->  {"predictions": [[0.2, 0.8]]}
///     GET  /v1/models/NAME, /v1/models/NAME/metadata, /healthz
///
/// and these paths with /versions/N after the name. Classifiers that have labels also return them,
/// under "labels". Each model has a thread and requests of its own, and its versions change
/// independently.
class ModelServer : private detail::HttpHandler {
 public:
  /// Loads the newest version and listens. Throws FileError, ConfigError.
  ModelServer(const std::string& folder, const ModelServerOptions& options);
  /// Loads the newest version of each model, and listens; `options.name` is ignored, and
  /// `options.worker` are those of each model. Throws FileError, and ConfigError for no models or
  /// two of one name.
  ModelServer(const std::vector<NamedExport>& models, const ModelServerOptions& options);
  /// Listens, and passes the requests for the model of this name on. Throws ConfigError, FileError.
  ModelServer(std::unique_ptr<detail::ModelHandler> model, const std::string& name,
              const HttpServerOptions& http);
  ~ModelServer() override;

  int port() const { return server_.port(); }
  /// Returns the version of the first model in service; null if the model is not an export.
  std::shared_ptr<const ServedModel> served() const;
  /// Returns the version of the model of this name in service; null if it is not an export. Throws
  /// ConfigError for an unknown name. Thread-safe.
  std::shared_ptr<const ServedModel> served(const std::string& name) const;
  /// Returns how often the model of this name was called; zeros if it is not an export. Throws
  /// ConfigError for an unknown name. Thread-safe.
  WorkerRecords records(const std::string& name) const;
  /// Serves until stop() or a signal, then drains, as HttpServer::run() does.
  void run() { server_.run(); }
  /// Makes run() drain and return. Thread-safe.
  void stop() { server_.stop(); }

 private:
  std::optional<detail::HttpResponse> refuse(const std::string& method,
                                             const std::string& target) override;
  void handle(detail::HttpRequest&& request, detail::HttpRespond respond) override;
  void drain() override;
  const detail::ModelHandler& model(const std::string& name) const;

  std::vector<std::string> names_;
  detail::HttpServer server_;
  // Declared after the server, whose requests they answer, so that they are destroyed first.
  std::map<std::string, std::unique_ptr<detail::ModelHandler>> models_;
};

}  // namespace tessera
