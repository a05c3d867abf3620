#include <tessera/framework/io/keras/compile_config.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/graph/internal/legacy_compile_config.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

template <class Object>
Json object_json(const char* module, const Object& object) {
  return {{"module", module},
          {"class_name", object.class_name()},
          {"config", object.config()},
          {"registered_name", nullptr}};
}

Json loss_json(const LossChoice& loss) {
  if (!loss) return nullptr;
  if (!loss.name().empty()) return loss.name();
  return object_json("keras.losses", *loss.loss({}, {}));
}

Json metric_json(const MetricHandle& metric) {
  if (!metric) return metric.text();
  return object_json("keras.metrics", *metric);
}

bool is_serialized(const Json& json) { return json.is_object() && json.contains("class_name"); }

/// Returns the name of a loss or metric that is configured by name or as one of Keras' functions.
std::optional<std::string> name_in(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  const bool function = is_serialized(json) && json["class_name"] == "function" &&
                        json.contains("config") && json["config"].is_string();
  return function ? std::optional(json["config"].get<std::string>()) : std::nullopt;
}

OptimizerHandle optimizer_from(const Json& json, const JsonPath& path) {
  if (json.is_null()) return {};
  try {
    return json.is_string() ? OptimizerHandle(json.get<std::string>().c_str())
                            : optimizer_from_config(json, path.text());
  } catch (const Error&) {
    rethrow_at(path.text());
  }
}

LossChoice loss_from(const Json& json, const JsonPath& path) {
  if (json.is_null()) return {};
  const auto name = name_in(json);
  if (!name) return loss_from_config(json, path.text());
  try {
    return name->c_str();
  } catch (const Error&) {
    rethrow_at(path.text());
  }
}

MetricHandle metric_from(const Json& json, const JsonPath& path) {
  try {
    const auto name = name_in(json);
    return name ? MetricHandle(name->c_str()) : MetricHandle(metric_from_config(json, path.text()));
  } catch (const Error&) {
    rethrow_at(path.text());
  }
}

/// Reads a value for all outputs, a list with one per output, or an object by output name.
template <class T, class One>
PerOutput<T> per_output_from(const Json& json, const JsonPath& path, const One& one) {
  if (json.is_null()) return {};
  if (json.is_array()) {
    std::vector<T> list;
    for (size_t i = 0; i < json.size(); ++i) list.push_back(one(json[i], path.index(i)));
    return list;
  }
  if (!json.is_object() || is_serialized(json)) return one(json, path);
  std::map<std::string, T> named;
  for (const auto& [name, value] : json.items()) named[name] = one(value, path.key(name));
  return named;
}

/// Reads a metric, a list of metrics, or null for none.
std::vector<MetricHandle> metric_list_from(const Json& json, const JsonPath& path) {
  if (json.is_null()) return {};
  if (!json.is_array()) return {metric_from(json, path)};
  std::vector<MetricHandle> list;
  for (size_t i = 0; i < json.size(); ++i) list.push_back(metric_from(json[i], path.index(i)));
  return list;
}

MetricsChoice metrics_from(const Json& json, const JsonPath& path) {
  if (json.is_object() && !is_serialized(json)) {
    std::map<std::string, std::vector<MetricHandle>> named;
    for (const auto& [name, metrics] : json.items()) {
      named[name] = metric_list_from(metrics, path.key(name));
    }
    return named;
  }
  const bool is_per_output =
      json.is_array() && std::any_of(json.begin(), json.end(),
                                     [](auto& item) { return item.is_array() || item.is_null(); });
  if (!is_per_output) return metric_list_from(json, path);
  std::vector<std::vector<MetricHandle>> lists;
  for (size_t i = 0; i < json.size(); ++i) {
    lists.push_back(metric_list_from(json[i], path.index(i)));
  }
  return lists;
}

}  // namespace

CompileOptions compile_options_from_config(const Json& config, const JsonPath& path) {
  JsonObject object(config, path.from_python());
  CompileOptions options;
  const auto take_json = [&](const std::string& key) { return object.take_or<Json>(key, nullptr); };
  const auto number = [](const Json& json, const JsonPath& at) {
    return json_as<double>(json, at);
  };
  options.optimizer = optimizer_from(take_json("optimizer"), path.key("optimizer"));
  options.loss = per_output_from<LossChoice>(take_json("loss"), path.key("loss"), loss_from);
  options.loss_weights =
      per_output_from<double>(take_json("loss_weights"), path.key("loss_weights"), number);
  options.metrics = metrics_from(take_json("metrics"), path.key("metrics"));
  options.weighted_metrics =
      metrics_from(take_json("weighted_metrics"), path.key("weighted_metrics"));
  options.run_eagerly = object.take_or("run_eagerly", false);
  options.auto_scale_loss = object.take_or("auto_scale_loss", true);
  take_json("steps_per_execution");
  take_json("jit_compile");
  object.finish();
  return options;
}

Json compile_config(const Model& model, const std::string& where) {
  if (!model.compiled() || !model.optimizer()) return nullptr;
  const CompileOptions options = model.compile_options();
  Json config = {{"optimizer", optimizer_to_config(options.optimizer)},
                 {"loss", options.loss.json(loss_json)},
                 {"loss_weights", options.loss_weights.json([](double of) { return Json(of); })},
                 {"metrics", options.metrics.json(metric_json)},
                 {"weighted_metrics", options.weighted_metrics.json(metric_json)},
                 {"run_eagerly", options.run_eagerly},
                 {"steps_per_execution", 1},
                 {"jit_compile", !options.run_eagerly}};
  // Keras' compile() accepts it, although Keras never writes it.
  if (!options.auto_scale_loss) config["auto_scale_loss"] = false;
  try {
    compile_options_from_config(config, JsonPath("compile_config"));
  } catch (const Error& error) {
    const Mesh mesh = options.layouts.defined() ? options.layouts.mesh() : options.mesh;
    warn_once(mesh.defined() ? mesh : default_mesh(),
              str(where,
                  " is saved without the compile configuration, so load_model() will not compile "
                  "the model: ",
                  error.what()));
    return nullptr;
  }
  return config;
}

void compile_from_config(const ModelHandle& model, const Json& config, const JsonPath& path,
                         const LayoutMap& layouts) {
  CompileOptions options;
  try {
    options = compile_options_from_config(to_keras_3_compile_config(config, path), path);
  } catch (const ConfigError& error) {
    const std::string line = error.what();
    throw ConfigError(line.substr(0, line.rfind('.')) +
                      ", or load the model without compiling it: {.compile = false}.");
  }
  options.layouts = layouts;
  model.compile(options);
}

}  // namespace tessera::detail
