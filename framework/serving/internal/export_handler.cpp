#include <tessera/framework/serving/internal/export_handler.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

namespace {

/// Returns a tensor's shape and dtype as JSON, in TensorFlow Serving's format.
Json tensor_info(const std::string& name, const std::string& dtype, const Shape& shape) {
  Json dims = Json::array();
  for (const int64_t extent : shape) {
    dims.push_back({{"size", std::to_string(extent)}, {"name", ""}});
  }
  return {
      {"dtype", dtype}, {"tensor_shape", {{"dim", dims}, {"unknown_rank", false}}}, {"name", name}};
}

/// Returns TensorFlow's name of a dtype.
std::string dtype_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kLong:
      return "DT_INT64";
    case at::kInt:
      return "DT_INT32";
    case at::kByte:
      return "DT_UINT8";
    case at::kBool:
      return "DT_BOOL";
    case at::kDouble:
      return "DT_DOUBLE";
    case at::kHalf:
      return "DT_HALF";
    case at::kBFloat16:
      return "DT_BFLOAT16";
    default:
      return "DT_FLOAT";
  }
}

Json status_json(const ServedModel& served) {
  const Json ok = {{"error_code", "OK"}, {"error_message", ""}};
  return {{"model_version_status", Json::array({{{"version", std::to_string(served.version)},
                                                 {"state", "AVAILABLE"},
                                                 {"status", ok}}})}};
}

Json metadata_json(const ServedModel& served, const std::string& name) {
  Json inputs = Json::object();
  for (const ExportedTensor& input : served.inputs) {
    inputs[input.name] = served.takes_text
                             ? tensor_info(input.name, "DT_STRING", {-1})
                             : tensor_info(input.name, dtype_of(input.dtype), input.shape);
  }
  Json outputs = Json::object();
  for (const ExportedTensor& output : served.outputs) {
    outputs[output.name] = tensor_info(output.name, dtype_of(output.dtype), output.shape);
  }
  const Json signature = {
      {"inputs", inputs}, {"outputs", outputs}, {"method_name", "tensorflow/serving/predict"}};
  const Json signatures = {{"serving_default", signature}};
  return {{"model_spec",
           {{"name", name}, {"signature_name", ""}, {"version", std::to_string(served.version)}}},
          {"metadata", {{"signature_def", {{"signature_def", signatures}}}}},
          {"labels", served.labels}};
}

}  // namespace

ExportHandler::ExportHandler(const std::string& folder, std::string name,
                             const ModelWorkerOptions& options)
    : name_(std::move(name)), limits_{.instances = options.max_batch}, worker_(folder, options) {}

void ExportHandler::predict(HttpRequest&& request, std::optional<int64_t> version,
                            HttpRespond respond) {
  const std::shared_ptr<const ServedModel> served = worker_.served();
  PredictLimits limits = limits_;
  limits.inputs = served->input_names;
  PredictRequest parsed = parse_predict_request(request.body, limits);
  parsed.signature = served->signature;
  worker_.submit(std::move(parsed), version, std::move(respond), std::move(request.abandoned));
}

HttpResponse ExportHandler::describe(const ModelRoute& route, const HttpRequest& request) const {
  const std::shared_ptr<const ServedModel> served = worker_.served();
  if (route.version && *route.version != served->version) {
    return error_response(404, str("[request] version ", served->version,
                                   " is served. Received: ", in_quotes(request.target), "."));
  }
  Json json = {{"status", "ok"}};
  if (route.action == ModelAction::status) json = status_json(*served);
  if (route.action == ModelAction::metadata) json = metadata_json(*served, name_);
  return {.body = to_json_text(json) + "\n"};
}

}  // namespace tessera::detail
