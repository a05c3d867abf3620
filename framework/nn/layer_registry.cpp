#include <tessera/framework/nn/layer_registry.hpp>

#include <algorithm>

namespace tessera {

using namespace detail;

namespace {

constexpr size_t max_name_bytes = 256;

LayerFactories& layer_table() {
  static LayerFactories factories;
  return factories;
}

/// Names reach paths, files and terminals.
void check_name(const std::string& name, const JsonPath& path) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f && byte != '/';
  });
  if (printable && name.size() <= max_name_bytes) return;
  throw ConfigError(path.text(),
                    str("a layer's name has at most ", max_name_bytes,
                        " bytes, no control character and no \"/\""),
                    in_quotes(name), "give it another name");
}

std::string dtype_name(const Json& json, const JsonPath& path) {
  if (json.is_string()) return json.get_ref<const std::string&>();
  if (!json.is_object()) json_fail(json, path, "a name or an object with \"class_name\"");
  auto [class_name, config] = read_serialized(json, path);
  if (class_name != "DTypePolicy") {
    json_fail(class_name, path.key("class_name"), "\"DTypePolicy\"");
  }
  const auto name = config.take<std::string>("name");
  config.finish();
  return name;
}

}  // namespace

void register_layer(const std::string& class_name,
                    std::function<LayerHandle(JsonObject&)> factory) {
  if (layer_table().emplace(class_name, std::move(factory)).second) return;
  throw ConfigError("register_layer", "a class name that is not taken", in_quotes(class_name),
                    "give the class another name");
}

std::vector<std::string> detail::layer_class_names() {
  std::vector<std::string> names;
  for (const auto& factory : layer_table()) names.push_back(factory.first);
  return names;
}

LayerHandle layer_from_config(const Json& serialized, const JsonPath& path) {
  auto [name, config] = read_serialized(serialized, path);
  if (!layer_table().contains(name)) {
    throw ConfigError(path.text(), "the name is that of a known layer class", in_quotes(name),
                      str(suggestion(name, layer_class_names()),
                          "; a class of your own is made known by register_layer()"));
  }
  return made_from("layer class", layer_table(), name, std::move(config), path);
}

LayerOptions take_layer_options(JsonObject& config) {
  LayerOptions options;
  options.name = config.take_or<std::string>("name", "");
  check_name(options.name, config.path().key("name"));
  options.trainable = config.take_or("trainable", true);
  if (const auto dtype = config.take_optional<Json>("dtype")) {
    const JsonPath path = config.path().key("dtype");
    try {
      options.dtype = dtype_name(*dtype, path);
      dtype_policy(options.dtype);
    } catch (const Error&) {
      rethrow_at(path.text());
    }
  }
  return options;
}

}  // namespace tessera
