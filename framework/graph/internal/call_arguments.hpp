#pragma once

#include <array>
#include <string>
#include <vector>

#include <tessera/framework/graph/internal/tensor_name.hpp>

namespace tessera::detail {

/// Whether layers of this class take initial states besides a sequence.
bool is_recurrent(const std::string& class_name);

/// Whether layers of this class are called on query, value and key, with masks by name.
bool takes_query(const std::string& class_name);

/// Names of the mask arguments of MultiHeadAttention's inputs, in order. Keras ignores query_mask
/// in favour of the query's own mask; the first name is therefore one that Keras rejects.
inline constexpr std::array<const char*, 3> attention_masks = {"mask", "value_mask", "key_mask"};

/// Options of attention layers that Keras passes to calls; here they are the constructor's.
inline constexpr std::array<const char*, 2> call_options = {"use_causal_mask",
                                                            "return_attention_scores"};

/// Returns Keras' name of the first argument of a layer's calls.
std::string first_argument(const std::string& layer);
/// Returns the names of the further arguments of layers that take several.
std::vector<std::string> further_arguments(const std::string& layer);

/// Returns a dict's values in the order of its keys; other JSON unchanged.
Json in_key_order(const Json& json);
/// Appends the names of a tensor, or of the tensors in a list or dict. Throws ConfigError.
void add_inputs(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path);
/// Replaces the tensors in an operation's arguments by placeholders and appends their names to
/// `inputs`. Throws ConfigError.
Json with_placeholders(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path);

/// The tensors of "input_layers" or "output_layers", and the JSON path of each.
struct EndNames {
  std::vector<TensorName> names;
  std::vector<JsonPath> paths;
  std::vector<std::string> keys;  ///< sorted keys of a dict; none for a list
};

/// Reads one tensor, a list or an object of tensors. Throws ConfigError naming the path.
EndNames end_names(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
