#pragma once

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Hashing.
struct HashingOptions {
  /// Number or text that alone goes to bin 0 (default: none).
  std::variant<std::monostate, int64_t, std::string> mask_value = {};
  /// Key of the hash, two numbers or one for both; without it, anybody can construct collisions.
  std::vector<int64_t> salt = {};
  std::string output_mode = "int";  ///< "int", "one_hot", "multi_hot" or "count"
  bool sparse = false;              ///< must be false: there are no sparse tensors
  std::string name = "";            ///< first component of the weights' paths
  /// "int64" (default) or "int32" in "int" mode; otherwise a dtype policy (default: global).
  std::string dtype = "";
  bool trainable = true;  ///< whether training changes the weights
};

/// Hashes integers or texts into bins, without a vocabulary (keras.layers.Hashing): the remainder
/// of FarmHash's Fingerprint64, or of SipHash-2-4 if there is a salt, of the text or the integer's
/// digits.
///
/// Shape: "int" (batch, …) -> (batch, …); other modes as CategoryEncoding, with num_bins columns.
/// Numbers are truncated to integers and hashed on the host.
/// Communication: none, unless the last axis is sharded in a mode other than "int" and "one_hot".
///
///     Hashing hashing(64);
///     at::Tensor bins = hashing({"London", "Paris"});
class Hashing : public LayerHandle {
 public:
  /// Throws ConfigError for fewer than 1 bin or options that do not fit together.
  explicit Hashing(int64_t num_bins, const HashingOptions& options = {});

  using LayerHandle::operator();
  /// Returns the bins of texts, on the host, since texts are no tensors: "int" (texts,); "one_hot"
  /// (texts, num_bins); other modes (num_bins,) for all texts together.
  at::Tensor operator()(const std::vector<std::string>& texts) const;
  at::Tensor operator()(std::initializer_list<const char*> texts) const;
};

}  // namespace tessera
