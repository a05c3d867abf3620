#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/graph/internal/tensor_name.hpp>
#include <tessera/framework/nn/symbolic.hpp>

namespace tessera::detail {

/// What a mask follows from: a tensor that is one, or a tensor whose elements are compared with a
/// number, as Embedding and Masking do.
struct MaskSource {
  const Node* node;
  size_t output;
  std::optional<double> unlike;

  auto operator<=>(const MaskSource&) const = default;
};

/// All that a mask follows from; empty: there is no mask, or none that is known of.
using MaskSources = std::set<MaskSource>;

/// The masks that tensors of a graph have, those that calls are given and what layers make of them.
class MaskFlow {
 public:
  /// Follows masks through a call; those that made its inputs come first.
  void add(const Node& node);
  /// Of a tensor, without what with_mask() gave it.
  const MaskSources& sources(const SymbolicTensor& tensor) const;

 private:
  std::map<const Node*, std::vector<MaskSources>> outputs_;
};

/// The masks that operations of a Keras model make (keras.ops), as its layers have them made; here
/// they follow by themselves.
class KerasMasks {
 public:
  /// An entry of a model's "layers" that is an operation. Throws ConfigError for tensors without a
  /// name.
  void add(const Json& json, const JsonPath& path);
  /// Finds the sources of masks whose inputs are there; whether there were any new ones.
  bool run(const std::function<const SymbolicTensor*(const TensorName&)>& find);
  /// The sources of a mask; null if there is no such operation, or not yet.
  const MaskSources* sources(const TensorName& mask) const;

 private:
  using CallName = std::pair<std::string, int64_t>;
  struct Call {
    CallName name;
    std::vector<TensorName> inputs;
    std::optional<double> unlike;
  };

  std::map<CallName, MaskSources> sources_;
  std::vector<Call> waiting_;
};

/// Whether an entry of a model's "layers" is an operation and no layer.
bool is_operation(const Json& json);

}  // namespace tessera::detail
