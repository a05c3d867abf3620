#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

/// Configuration of layers. fields(options, visit) in a layer's source names its options by Keras'
/// keys, except name, dtype and trainable, which all layers have. config() and layer_options_from()
/// are derived from it.
namespace tessera::detail {

/// Returns the options that every layer has from a layer's own options.
template <class Options>
LayerOptions common_options(const Options& options) {
  return {options.name, options.dtype, options.trainable};
}

/// Options of an image layer with bounding boxes, whose format Keras writes only if it is set.
template <class Options>
concept HasBoxes = requires(Options options) {
  options.bounding_box_format;
};

/// Returns a layer's config(): the options that every layer has, then `arguments` outside its
/// options, such as {{"units", 3}}, then its own options, if any.
inline Json layer_config(const Layer& layer, const Json& arguments) {
  Json json = layer.Layer::config();
  json.update(arguments);
  return json;
}
template <class Options>
Json layer_config(const Layer& layer, const Json& arguments, const Options& options) {
  Json json = layer_config(layer, arguments);
  const Json own = config_of(options);
  for (const auto& [key, value] : own.items()) {
    if (!value.is_discarded()) json[key] = value;
  }
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

/// Reads a layer's options from its configuration; absent and null keys keep the default. Throws
/// ConfigError naming the key.
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

/// Converts options to another struct, copying those with the same key and type.
template <class To, class From>
To copied_options(From from) {
  To to;
  to.name = from.name;
  to.dtype = from.dtype;
  to.trainable = from.trainable;
  fields(to, [&](const std::string& key, auto& copy) {
    fields(from, [&](const std::string& source_key, auto& value) {
      if constexpr (std::is_same_v<decltype(copy), decltype(value)>) {
        if (source_key == key) copy = value;
      }
    });
  });
  return to;
}

/// Registers a layer class with layer_from_config(); one per class, in its source.
struct RegisteredLayer {
  RegisteredLayer(const std::string& class_name,
                  std::function<LayerHandle(JsonObject&)> from_config) {
    register_library_layer(class_name, std::move(from_config));
  }
};

/// Makes a layer without options of its own from its configuration.
template <class Handle>
LayerHandle plain_layer(JsonObject& config) {
  return Handle(take_layer_options(config));
}

/// Axes as Keras writes them: a single axis is a number. Visited in place of the list.
struct AxesOption {
  std::vector<int64_t>& axes;
};
inline Json option_json(const AxesOption& option) { return axes_json(option.axes); }
inline void read_option(JsonObject& config, const std::string& key, AxesOption& option) {
  if (config.has(key)) option.axes = take_axes(config, key);
}

/// A bool that is an argument of call() in Keras, and unknown in a configuration: written only if
/// it is true. Visited in place of the bool.
struct CallOption {
  bool& value;
  /// Copies the bool, for copied_options().
  CallOption& operator=(const CallOption& other) {
    value = other.value;
    return *this;
  }
};
inline Json option_json(const CallOption& option) {
  return option.value ? Json(true) : Json(Json::value_t::discarded);
}
inline void read_option(JsonObject& config, const std::string& key, CallOption& option) {
  read_option(config, key, option.value);
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
