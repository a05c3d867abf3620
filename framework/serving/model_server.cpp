#include <tessera/framework/serving/model_server.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/serving/http/model_route.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>
#include <tessera/framework/serving/internal/export_handler.hpp>

namespace tessera {

using namespace detail;

ModelServer::ModelServer(const std::string& folder, const ModelServerOptions& options)
    : name_(options.name),
      server_(options.http, *this),
      model_(std::make_unique<ExportHandler>(folder, name_, options.worker)) {}

ModelServer::ModelServer(std::unique_ptr<ModelHandler> model, const std::string& name,
                         const HttpServerOptions& http)
    : name_(name), server_(http, *this), model_(std::move(model)) {}

ModelServer::~ModelServer() = default;

std::shared_ptr<const ServedModel> ModelServer::served() const { return model_->served(); }

std::optional<HttpResponse> ModelServer::refuse(const std::string& method,
                                                const std::string& target) {
  return refuse_route(method, target, name_);
}

void ModelServer::handle(HttpRequest&& request, HttpRespond respond) {
  // refuse() has parsed the target before.
  const ModelRoute route = parse_model_route(request.target, name_).value();
  try {
    if (route.action != ModelAction::predict) return respond(model_->describe(route, request));
    model_->predict(std::move(request), route.version, respond);
  } catch (const RequestError& error) {
    respond(error_response(error.status(), error.what()));
  } catch (const ConfigError& error) {
    respond(error_response(400, error.what()));
  }
}

void ModelServer::drain() { model_->drain(); }

}  // namespace tessera
