#include <tessera/framework/graph/internal/keras_1_layer.hpp>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/graph/internal/legacy_text.hpp>

namespace tessera::detail {
namespace {

using Names = std::map<std::string, std::string>;

const Names& class_names() {
  static const Names table = {
      {"Convolution1D", "Conv1D"},           {"Convolution2D", "Conv2D"},
      {"Convolution3D", "Conv3D"},           {"AtrousConvolution1D", "Conv1D"},
      {"AtrousConvolution2D", "Conv2D"},     {"SeparableConvolution2D", "SeparableConv2D"},
      {"Deconvolution2D", "Conv2DTranspose"}};
  return table;
}

/// Keras 1's keys of any layer, and Keras 2's.
const Names& key_names() {
  static const Names table = {{"nb_filter", "filters"},
                              {"subsample", "strides"},
                              {"subsample_length", "strides"},
                              {"border_mode", "padding"},
                              {"dim_ordering", "data_format"},
                              {"atrous_rate", "dilation_rate"},
                              {"bias", "use_bias"},
                              {"init", "kernel_initializer"},
                              {"inner_init", "recurrent_initializer"},
                              {"gamma_init", "gamma_initializer"},
                              {"beta_init", "beta_initializer"},
                              {"inner_activation", "recurrent_activation"},
                              {"W_regularizer", "kernel_regularizer"},
                              {"U_regularizer", "recurrent_regularizer"},
                              {"b_regularizer", "bias_regularizer"},
                              {"W_constraint", "kernel_constraint"},
                              {"U_constraint", "recurrent_constraint"},
                              {"b_constraint", "bias_constraint"},
                              {"dropout_W", "dropout"},
                              {"dropout_U", "recurrent_dropout"},
                              {"pool_length", "pool_size"},
                              {"stride", "strides"},
                              {"p", "rate"},
                              {"sigma", "stddev"}};
  return table;
}

/// Keras 1's keys that have no effect on a built model.
constexpr const char* unused_keys[] = {"input_dim",    "input_length",     "input_dtype",
                                       "consume_less", "weights",          "trainable_weights",
                                       "batch_size",   "forget_bias_init", "create_input_layer"};

/// Replaces numbers under several keys by a list under one.
void join_keys(Json& config, const std::vector<const char*>& keys, const char* joined) {
  Json list = Json::array();
  for (const char* key : keys) {
    if (!config.contains(key)) return;
    list.push_back(config[key]);
    config.erase(key);
  }
  config[joined] = std::move(list);
}

/// Converts a value of Keras 1 under Keras 2's key.
void translate_value(const std::string& key, Json& value) {
  static const Names texts = {{"th", "channels_first"}, {"tf", "channels_last"}};
  static const Names initializers = {{"uniform", "random_uniform"},
                                     {"normal", "random_normal"},
                                     {"zero", "zeros"},
                                     {"one", "ones"}};
  const auto replace = [&](const Names& names) {
    if (!value.is_string()) return;
    const auto found = names.find(value.get<std::string>());
    if (found != names.end()) value = found->second;
  };
  if (key == "data_format") replace(texts);
  if (key.ends_with("_initializer")) replace(initializers);
  if (key.ends_with("_regularizer") && value.is_object() && value.contains("name")) {
    value = {
        {"class_name", "L1L2"},
        {"config", {{"l1", value.value("l1", Json(0.0))}, {"l2", value.value("l2", Json(0.0))}}}};
  }
  if (key.ends_with("_constraint") && value.is_object() && value.contains("name")) {
    Json config = value;
    const Json name = value["name"];
    config.erase("name");
    if (config.contains("m")) {
      config["max_value"] = Json(config["m"]);
      config.erase("m");
    }
    value = {{"class_name", name}, {"config", config}};
  }
}

/// Converts a Merge to the layer of its mode.
void translate_merge(Json& layer, const JsonPath& path) {
  static const Names modes = {{"sum", "Add"},     {"mul", "Multiply"},       {"ave", "Average"},
                              {"max", "Maximum"}, {"concat", "Concatenate"}, {"dot", "Dot"},
                              {"cos", "Dot"}};
  Json& config = layer["config"];
  const Json mode = config.contains("mode") ? config["mode"] : Json("sum");
  const auto found = mode.is_string() ? modes.find(mode.get<std::string>()) : modes.end();
  const bool nested = config.contains("layers") && !config["layers"].empty();
  if (found == modes.end() || nested) {
    json_fail(nested ? config["layers"] : mode, path.key("config").key(nested ? "layers" : "mode"),
              nested ? "absent: make a Functional model of the branches with Keras 1"
                     : "one of \"sum\", \"mul\", \"ave\", \"max\", \"concat\", \"dot\", \"cos\"");
  }
  Json made = {{"name", config.value("name", Json("merge"))}};
  if (found->second == "Concatenate") made["axis"] = config.value("concat_axis", Json(-1));
  if (found->second == "Dot") {
    made["axes"] = config.value("dot_axes", Json(-1));
    made["normalize"] = mode == "cos";
  }
  layer["class_name"] = found->second;
  config = std::move(made);
}

/// Joins the extents of kernels, and of convolutions over several axes.
void join_extents(Json& config) {
  join_keys(config, {"kernel_dim1", "kernel_dim2", "kernel_dim3"}, "kernel_size");
  join_keys(config, {"nb_row", "nb_col"}, "kernel_size");
  join_keys(config, {"filter_length"}, "kernel_size");
}

}  // namespace

void to_keras_2_layer(Json& layer, const JsonPath& path) {
  static const std::set<std::string> with_units = {"Dense", "SimpleRNN", "LSTM", "GRU"};
  std::string kind = config_of_layer(layer) ? text_at(layer, "class_name") : "";
  if (kind.empty() || kind == "Sequential" || kind == "Model") return;
  if (kind == "Merge") return translate_merge(layer, path);
  if (const auto found = class_names().find(kind); found != class_names().end()) {
    kind = found->second;
    layer["class_name"] = kind;
  }
  Json& config = layer["config"];
  if (kind == "InputLayer") {
    if (config.contains("input_dtype")) config["dtype"] = Json(config["input_dtype"]);
    config.erase("input_dtype");
    return;
  }
  if (kind == "BatchNormalization" && config.contains("mode")) {
    if (config["mode"] != 0) json_fail(config["mode"], path.key("config").key("mode"), "0");
    config.erase("mode");
  }
  if (kind == "LSTM")
    config["unit_forget_bias"] = config.value("forget_bias_init", Json("one")) == "one";
  for (const char* key : unused_keys) {
    // An Embedding's input_dim is its vocabulary.
    if (kind != "Embedding" || key != std::string("input_dim")) config.erase(key);
  }
  if (kind == "Conv2DTranspose") config.erase("output_shape");
  join_extents(config);
  Json renamed = Json::object();
  for (auto& [key, value] : config.items()) {
    const auto found = key_names().find(key);
    std::string name = found == key_names().end() ? key : found->second;
    if (key == "output_dim" && with_units.contains(kind)) name = "units";
    if (key == "length" && kind == "UpSampling1D") name = "size";
    if (kind == "Embedding" && key.starts_with("W_")) name = "embeddings_" + key.substr(2);
    if (kind == "Embedding" && key == "init") name = "embeddings_initializer";
    if (kind == "Embedding" && key == "dropout") continue;
    translate_value(name, value);
    renamed[name] = value;
  }
  config = std::move(renamed);
}

}  // namespace tessera::detail
