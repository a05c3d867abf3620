#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of CategoryEncoding.
struct CategoryEncodingOptions {
  std::string output_mode = "multi_hot";  ///< "one_hot", "multi_hot" or "count"
  bool sparse = false;                    ///< there are no sparse tensors: only false
  std::string name = "";                  ///< first part of the weights' paths
  std::string dtype = "";                 ///< policy; the default one if empty
  bool trainable = true;                  ///< whether training changes the weights
};

/// Numbers of categories as rows of 0 and 1, or of how often each came
/// (keras.layers.CategoryEncoding). Numbers outside [0, num_tokens) are left out.
///
/// Shape: "one_hot" (batch, …) -> (batch, …, num_tokens), in place of a last axis of extent 1;
/// "multi_hot" and "count" (batch, numbers) -> (batch, num_tokens). Any numbers, taken as whole
/// ones, become such of the compute dtype. In "count" mode a second input of the same shape holds
/// weights, which are added up (Keras' count_weights).
/// Communication: none while the last axis is not sharded.
///
///     DTensor rows = CategoryEncoding(4, {.output_mode = "count"})({numbers, amounts});
class CategoryEncoding : public LayerHandle {
 public:
  /// Throws ConfigError for fewer than 1 token or an unknown mode.
  explicit CategoryEncoding(int64_t num_tokens, const CategoryEncodingOptions& options = {});
};

}  // namespace tessera
