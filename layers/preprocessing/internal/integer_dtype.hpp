#pragma once

#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/layer_config.hpp>

/// The dtype of layers that return integers in "int" mode: there the option `dtype` is "int64" or
/// "int32", which are not dtype policies.
namespace tessera::detail {

inline bool is_integer_dtype(const std::string& name) { return name == "int64" || name == "int32"; }

inline at::ScalarType integer_dtype(const std::string& name) {
  return name == "int32" ? at::kInt : at::kLong;
}

/// Returns the options that every layer has. Throws ConfigError for a dtype that the mode does not
/// support.
template <class Options>
LayerOptions integer_layer_options(const Options& options) {
  LayerOptions common = common_options(options);
  if (options.output_mode != "int") return common;
  if (!options.dtype.empty() && !is_integer_dtype(options.dtype)) {
    throw ConfigError("layer " + options.name, "dtype is \"int64\" or \"int32\" in \"int\" mode",
                      in_quotes(options.dtype), "leave it out for \"int64\"");
  }
  common.dtype = "";
  return common;
}

/// Writes the dtype in "int" mode.
template <class Options>
void put_integer_dtype(Json& config, const Options& options) {
  if (options.output_mode != "int") return;
  config["dtype"] = options.dtype.empty() ? "int64" : options.dtype;
}

/// Reads options like layer_options_from(); dtype may also be "int64" or "int32".
template <class Options>
Options integer_layer_options_from(JsonObject& config) {
  const auto dtype = config.take_optional<Json>("dtype");
  const std::string name = dtype ? policy_name(*dtype, config.path().key("dtype")) : "";
  if (!is_integer_dtype(name)) return layer_options_from<Options>(config);
  Options options;
  options.name = config.take_or<std::string>("name", "");
  options.trainable = config.take_or("trainable", true);
  options.dtype = name;
  read_fields(config, options);
  return options;
}

}  // namespace tessera::detail
