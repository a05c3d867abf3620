#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A layer or model of {"class_name", "config"}; `depth` counts the models around it. Throws
/// ConfigError naming the place.
LayerHandle any_layer_from_config(const Json& serialized, const JsonPath& path, int depth);

/// A Functional model from its "config": "layers" with their calls as Keras' "inbound_nodes",
/// "input_layers", "output_layers". Throws ConfigError naming the place.
LayerHandle functional_from_config(const Json& config, const JsonPath& path, int depth);

/// Which tensor a configuration means.
struct TensorName {
  std::string layer;
  int64_t call;
  int64_t output;
};

/// From [layer, call, output]. Throws ConfigError naming the place.
TensorName tensor_name(const Json& json, const JsonPath& path);

/// Whether the JSON is a tensor's, as arguments of calls are.
bool is_tensor(const Json& json);

/// From a tensor's JSON. Throws ConfigError naming the place.
TensorName name_of_tensor(const Json& json, const JsonPath& path);

/// Whether layers of this class take first states beside a sequence.
bool is_recurrent(const std::string& class_name);

/// Whether layers of this class are called on a query, a value, a key and their masks by name.
bool takes_query(const std::string& class_name);

/// What the masks of MultiHeadAttention's inputs are called, in their order. Keras passes over its
/// query_mask: the query's own mask takes its place. So the first has the name that Keras refuses.
inline constexpr std::array<const char*, 3> attention_masks = {"mask", "value_mask", "key_mask"};

/// What layers of attention are told at their calls in Keras, and when they are made here.
inline constexpr std::array<const char*, 2> call_options = {"use_causal_mask",
                                                            "return_attention_scores"};

}  // namespace tessera::detail
