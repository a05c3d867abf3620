#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/model/internal/functional_config.hpp>
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

/// The operations in a Keras model (keras.ops). Its layers make masks with some, which follow here
/// by themselves; others are known by their names only.
class KerasOperations {
 public:
  /// An entry of a model's "layers" that is an operation. Throws ConfigError for tensors without a
  /// name.
  void add(const Json& json, const JsonPath& path);
  /// Finds the sources of masks whose inputs are there; whether there were any new ones.
  bool run(const std::function<const SymbolicTensor*(const TensorName&)>& find);
  /// The sources of a mask; null if there is no such operation, or not yet.
  const MaskSources* sources(const TensorName& mask) const;
  /// "Add", quoted; empty if no operation has the name.
  std::string described(const std::string& name) const;

 private:
  using CallName = std::pair<std::string, int64_t>;
  struct Call {
    CallName name;
    std::vector<TensorName> inputs;
    std::optional<double> unlike;
  };

  std::map<std::string, std::string> classes_;  ///< by name
  std::map<CallName, MaskSources> sources_;
  std::vector<Call> waiting_;
};

/// Whether an entry of a model's "layers" is an operation of keras.ops.
bool is_operation(const Json& json);

}  // namespace tessera::detail
