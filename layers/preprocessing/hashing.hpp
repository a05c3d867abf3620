#pragma once

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Hashing.
struct HashingOptions {
  /// The number or text of bin 0, which nothing else is in then; none if absent.
  std::variant<std::monostate, int64_t, std::string> mask_value = {};
  /// Key of the hash, two numbers or one for both; without it everybody can find texts of a bin.
  std::vector<int64_t> salt = {};
  std::string output_mode = "int";  ///< "int", "one_hot", "multi_hot" or "count"
  bool sparse = false;              ///< there are no sparse tensors: only false
  std::string name = "";            ///< first part of the weights' paths
  /// In "int" mode "int64", as if empty, or "int32"; else a policy, the default one if empty.
  std::string dtype = "";
  bool trainable = true;  ///< whether training changes the weights
};

/// Whole numbers or texts as numbers of bins, without a vocabulary (keras.layers.Hashing): the
/// remainder of FarmHash's Fingerprint64, with a salt of SipHash-2-4, of the text or of the
/// number's digits.
///
/// Shape: "int" (batch, …) -> (batch, …); other modes as CategoryEncoding, with num_bins columns.
/// Numbers are taken as whole ones and hashed on the host.
/// Communication: none in "int" and "one_hot" mode; in others while the last axis is not sharded.
///
///     Hashing hashing(64);
///     at::Tensor bins = hashing({"London", "Paris"});
class Hashing : public LayerHandle {
 public:
  /// Throws ConfigError for fewer than 1 bin or options that do not fit together.
  explicit Hashing(int64_t num_bins, const HashingOptions& options = {});

  using LayerHandle::operator();
  /// The bins of texts, on the host, for texts are no tensors of a model: "int" (texts,); "one_hot"
  /// (texts, num_bins); else (num_bins,) of all of them together.
  at::Tensor operator()(const std::vector<std::string>& texts) const;
  at::Tensor operator()(std::initializer_list<const char*> texts) const;
};

}  // namespace tessera
