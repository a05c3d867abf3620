#include <tessera/framework/serving/model_server.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/internal/export_memory.hpp>
#include <tessera/framework/serving/http/model_route.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>
#include <tessera/framework/serving/internal/export_handler.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns the names of the models. Throws ConfigError if there are none, or two of one name.
std::vector<std::string> names_of_models(const std::vector<NamedExport>& models) {
  std::vector<std::string> names;
  for (const NamedExport& model : models) {
    if (std::find(names.begin(), names.end(), model.name) != names.end()) {
      throw ConfigError("ModelServer", "the names of models must differ", in_quotes(model.name),
                        "give each model a name of its own");
    }
    names.push_back(model.name);
  }
  if (!names.empty()) return names;
  throw ConfigError("ModelServer", "at least one model must be served", "none",
                    "give names and folders of exports");
}

/// Returns the options of each of `count` models, which share the memory for activations.
ModelWorkerOptions options_of_each(ModelWorkerOptions options, size_t count) {
  if (options.max_activation_bytes || count == 1) return options;
  const double bytes = max_activation_bytes(std::nullopt, options.layouts);
  if (!std::isinf(bytes)) {
    options.max_activation_bytes = static_cast<int64_t>(bytes / static_cast<double>(count));
  }
  return options;
}

}  // namespace

ModelServer::ModelServer(const std::string& folder, const ModelServerOptions& options)
    : ModelServer(std::vector<NamedExport>{{options.name, folder}}, options) {}

ModelServer::ModelServer(const std::vector<NamedExport>& models, const ModelServerOptions& options)
    : names_(names_of_models(models)), server_(options.http, *this) {
  const ModelWorkerOptions worker = options_of_each(options.worker, models.size());
  for (const auto& [name, folder] : models) {
    models_[name] = std::make_unique<ExportHandler>(folder, name, worker);
  }
}

ModelServer::ModelServer(std::unique_ptr<ModelHandler> model, const std::string& name,
                         const HttpServerOptions& http)
    : names_{name}, server_(http, *this) {
  models_[name] = std::move(model);
}

ModelServer::~ModelServer() = default;

const ModelHandler& ModelServer::model(const std::string& name) const {
  const auto found = models_.find(name);
  if (found != models_.end()) return *found->second;
  throw ConfigError("ModelServer", "the model must be served", in_quotes(name),
                    suggestion(name, names_));
}

std::shared_ptr<const ServedModel> ModelServer::served() const { return served(names_[0]); }

std::shared_ptr<const ServedModel> ModelServer::served(const std::string& name) const {
  return model(name).served();
}

WorkerRecords ModelServer::records(const std::string& name) const { return model(name).records(); }

std::optional<HttpResponse> ModelServer::refuse(const std::string& method,
                                                const std::string& target) {
  return refuse_route(method, target, names_);
}

void ModelServer::handle(HttpRequest&& request, HttpRespond respond) {
  // refuse() has parsed the target before.
  const ModelRoute route = parse_model_route(request.target).value();
  ModelHandler& model = *models_.at(route.name.empty() ? names_[0] : route.name);
  try {
    if (route.action != ModelAction::predict) return respond(model.describe(route, request));
    model.predict(std::move(request), route.version, respond);
  } catch (const RequestError& error) {
    respond(error_response(error.status(), error.what()));
  } catch (const ConfigError& error) {
    respond(error_response(400, error.what()));
  }
}

void ModelServer::drain() {
  for (const auto& [name, model] : models_) model->drain();
}

}  // namespace tessera
