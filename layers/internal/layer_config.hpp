#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

/// How layers are configured: fields(options, visit) in a layer's source names its options by
/// Keras' keys, but for name, dtype and trainable, which all layers have. config() and what makes
/// the layer of a configuration come from it.
namespace tessera::detail {

/// The options that every layer has, out of a layer's own.
template <class Options>
LayerOptions common_options(const Options& options) {
  return {options.name, options.dtype, options.trainable};
}

/// Options of a layer on images that boxes follow. Keras writes their format where there is one.
template <class Options>
concept HasBoxes = requires(Options options) {
  options.bounding_box_format;
};

/// A layer's config(): what every layer has, then its arguments that are no options, such as
/// {{"units", 3}}, then its options, if it has any of its own.
inline Json layer_config(const Layer& layer, const Json& arguments) {
  Json json = layer.Layer::config();
  json.update(arguments);
  return json;
}
template <class Options>
Json layer_config(const Layer& layer, const Json& arguments, const Options& options) {
  Json json = layer_config(layer, arguments);
  json.update(config_of(options));
  if constexpr (HasBoxes<Options>) {
    if (!options.bounding_box_format.empty()) {
      json["bounding_box_format"] = options.bounding_box_format;
    }
  }
  return json;
}
template <class Options>
Json layer_config(const Layer& layer, const Options& options) {
  return layer_config(layer, Json::object(), options);
}

/// Leaves out the options of these keys that are false: Keras has them as arguments of a call, and
/// does not know them in a configuration.
inline void leave_out_false(Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (config.at(key) == false) config.erase(key);
  }
}

/// A layer's options out of its configuration; what is absent or null stays as it is by default.
/// Throws ConfigError naming the key.
template <class Options>
Options layer_options_from(JsonObject& config) {
  Options options;
  const LayerOptions common = take_layer_options(config);
  options.name = common.name;
  options.dtype = common.dtype;
  options.trainable = common.trainable;
  if constexpr (HasBoxes<Options>) {
    read_option(config, "bounding_box_format", options.bounding_box_format);
  }
  read_fields(config, options);
  return options;
}

/// Options of another struct: each takes the value of the option that has its key and type.
template <class To, class From>
To copied_options(From from) {
  To to;
  to.name = from.name;
  to.dtype = from.dtype;
  to.trainable = from.trainable;
  fields(to, [&](const std::string& key, auto& copy) {
    fields(from, [&](const std::string& given, auto& value) {
      if constexpr (std::is_same_v<decltype(copy), decltype(value)>) {
        if (given == key) copy = value;
      }
    });
  });
  return to;
}

/// Makes a layer class known to layer_from_config(); one for each class, in its source.
struct RegisteredLayer {
  RegisteredLayer(const std::string& class_name,
                  std::function<LayerHandle(JsonObject&)> from_config) {
    register_layer(class_name, std::move(from_config));
  }
};

/// What makes a layer that has the common options only.
template <class Handle>
LayerHandle plain_layer(JsonObject& config) {
  return Handle(take_layer_options(config));
}

/// Axes as Keras writes them, one of them as a number; visited in place of the list.
struct AxesOption {
  std::vector<int64_t>& axes;
};
inline Json option_json(const AxesOption& option) { return axes_json(option.axes); }
inline void read_option(JsonObject& given, const std::string& key, AxesOption& option) {
  if (given.has(key)) option.axes = take_axes(given, key);
}

/// Visits the options of layers with a kernel and a bias.
template <class Options, class Visit>
void kernel_fields(Options& o, const Visit& visit) {
  visit("kernel_initializer", o.kernel_initializer);
  visit("bias_initializer", o.bias_initializer);
  visit("kernel_regularizer", o.kernel_regularizer);
  visit("bias_regularizer", o.bias_regularizer);
  visit("activity_regularizer", o.activity_regularizer);
  visit("kernel_constraint", o.kernel_constraint);
  visit("bias_constraint", o.bias_constraint);
}

}  // namespace tessera::detail
