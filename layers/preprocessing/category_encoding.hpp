#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of CategoryEncoding.
struct CategoryEncodingOptions {
  std::string output_mode = "multi_hot";  ///< "one_hot", "multi_hot" or "count"
  bool sparse = false;                    ///< must be false: there are no sparse tensors
  std::string name = "";                  ///< first component of the weights' paths
  std::string dtype = "";                 ///< dtype policy (default: the global policy)
  bool trainable = true;                  ///< whether training changes the weights
};

/// Encodes category numbers as rows of 0 and 1, or of counts (keras.layers.CategoryEncoding).
/// Numbers outside [0, num_tokens) are ignored.
///
/// Shape: "one_hot" (batch, …) -> (batch, …, num_tokens), which replaces a last axis of extent 1;
/// "multi_hot" and "count" (batch, numbers) -> (batch, num_tokens). Inputs of any dtype are
/// truncated to integers; the output has the compute dtype. In "count" mode a second input of the
/// same shape holds weights, which are summed (Keras' count_weights).
/// Communication: none unless the last axis is sharded.
///
///     DTensor rows = CategoryEncoding(4, {.output_mode = "count"})({numbers, amounts});
class CategoryEncoding : public LayerHandle {
 public:
  /// Throws ConfigError for fewer than 1 token or an unknown mode.
  explicit CategoryEncoding(int64_t num_tokens, const CategoryEncodingOptions& options = {});
};

}  // namespace tessera
