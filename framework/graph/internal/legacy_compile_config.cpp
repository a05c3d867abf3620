#include <tessera/framework/graph/internal/legacy_compile_config.hpp>

#include <string>
#include <utility>

#include <tessera/framework/graph/internal/legacy_text.hpp>

namespace tessera::detail {
namespace {

/// Converts a loss or metric, or lists and dicts of them.
void translate_measure(Json& json) {
  if (!json.is_object()) {
    if (!json.is_array()) return;
    for (Json& one : json) translate_measure(one);
    return;
  }
  Json* config = config_of_layer(json);
  if (!config) {
    for (auto& [name, one] : json.items()) translate_measure(one);
    return;
  }
  const std::string function = text_at(*config, "fn");
  if (text_at(json, "class_name") == "MeanMetricWrapper" && !function.empty()) {
    json = function;
    return;
  }
  config->erase("fn");
  if (text_at(*config, "reduction") == "auto") config->erase("reduction");
}

/// Converts an optimizer's class and "config"; its "decay" becomes a learning rate schedule.
void translate_optimizer(Json& json, const JsonPath& path) {
  Json* config = config_of_layer(json);
  if (!config) json_fail(json, path, "an object with \"class_name\" and \"config\"");
  const std::string name = text_at(json, "class_name"), custom = "Custom>";
  if (name.starts_with(custom)) json["class_name"] = name.substr(custom.size());
  for (const char* key : {"jit_compile", "is_legacy_optimizer"}) config->erase(key);
  if (config->contains("epsilon") && (*config)["epsilon"].is_null()) config->erase("epsilon");
  if (config->contains("lr")) {
    (*config)["learning_rate"] = Json((*config)["lr"]);
    config->erase("lr");
  }
  if (!config->contains("decay")) return;
  const double decay = json_as<double>((*config)["decay"], path.key("config").key("decay"));
  config->erase("decay");
  if (decay == 0) return;
  if (text_at(json, "class_name") == "Nadam" || !config->contains("learning_rate")) {
    json_fail(decay, path.key("config").key("decay"), "0 for this optimizer");
  }
  (*config)["learning_rate"] = {{"class_name", "InverseTimeDecay"},
                                {"config",
                                 {{"initial_learning_rate", (*config)["learning_rate"]},
                                  {"decay_steps", 1},
                                  {"decay_rate", decay}}}};
}

/// Returns whether Keras 2 wrote it, or Keras 3 into an ".h5" file.
bool is_legacy_compile_config(const Json& json) {
  if (!json.is_object()) return false;
  if (json.contains("optimizer_config")) return true;
  if (!json.contains("optimizer") || !json["optimizer"].is_object()) return false;
  const Json& optimizer = json["optimizer"];
  if (!optimizer.contains("config") || !optimizer["config"].is_object()) return false;
  for (const char* key : {"jit_compile", "is_legacy_optimizer", "decay", "lr"}) {
    if (optimizer["config"].contains(key)) return true;
  }
  return false;
}

}  // namespace

Json to_keras_3_compile_config(Json compiled, const JsonPath& path) {
  if (!is_legacy_compile_config(compiled)) return compiled;
  const char* key = compiled.contains("optimizer_config") ? "optimizer_config" : "optimizer";
  Json optimizer = compiled[key];
  translate_optimizer(optimizer, path.key(key));
  compiled.erase(key);
  compiled["optimizer"] = std::move(optimizer);
  compiled.erase("sample_weight_mode");
  for (const char* measured : {"loss", "metrics", "weighted_metrics"}) {
    if (compiled.contains(measured)) translate_measure(compiled[measured]);
  }
  return compiled;
}

}  // namespace tessera::detail
