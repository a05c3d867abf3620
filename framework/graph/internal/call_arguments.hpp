#pragma once

#include <array>
#include <string>
#include <vector>

#include <tessera/framework/graph/internal/tensor_name.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

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

/// Whether the layer is a Functional model. No other class may have its name.
bool is_functional(const Layer& layer);

/// What Keras calls the first argument of a layer's calls.
std::string first_argument(const std::string& layer);
/// Names of the arguments behind it, where Keras' layers take several.
std::vector<std::string> further_arguments(const std::string& layer);

/// The values of a dict in the order of its keys; anything else as it is.
Json in_key_order(const Json& json);
/// Adds the names of a tensor, or of several in a list or a dict. Throws ConfigError.
void add_inputs(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path);
/// The arguments of an operation with places for tensors; adds their names. Throws ConfigError.
Json with_places(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path);

/// The tensors of "input_layers" or "output_layers", and where each is written.
struct EndNames {
  std::vector<TensorName> names;
  std::vector<JsonPath> paths;
  std::vector<std::string> keys;  ///< of a dict, sorted; none for a list
};

/// From one tensor, a list or an object of tensors. Throws ConfigError naming the place.
EndNames end_names(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
