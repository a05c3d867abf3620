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

/// The origin of a mask: a tensor given as mask, or a tensor whose elements are compared with the
/// number `mask_value`, as Embedding and Masking do.
struct MaskSource {
  const Node* node;
  size_t output;
  std::optional<double> mask_value;

  auto operator<=>(const MaskSource&) const = default;
};

/// The origins that a mask is computed from; empty if there is no mask, or no known one.
using MaskSources = std::set<MaskSource>;

/// Tracks masks through a graph: those given to calls, and how layers propagate them.
class MaskFlow {
 public:
  /// Propagates masks through a call. The calls that made its inputs must be added before.
  void add(const Node& node);
  /// Returns the sources of a tensor's own mask, ignoring with_mask().
  const MaskSources& sources(const SymbolicTensor& tensor) const;

 private:
  std::map<const Node*, std::vector<MaskSources>> outputs_;
};

/// The masks that operations (keras.ops) compute in a Keras model. Keras' layers write these
/// operations into the graph; here layers propagate masks without them.
class KerasMasks {
 public:
  /// Reads an entry of a model's "layers" that is an operation. Throws ConfigError for tensors
  /// without a name.
  void add(const Json& json, const JsonPath& path);
  /// Finds the sources of masks whose inputs exist. Returns whether there were any new ones.
  bool run(const std::function<const SymbolicTensor*(const TensorName&)>& find);
  /// Returns the sources of a mask; null if no operation computes it, or its inputs do not exist
  /// yet.
  const MaskSources* sources(const TensorName& mask) const;

 private:
  using CallName = std::pair<std::string, int64_t>;
  struct Call {
    CallName name;
    std::vector<TensorName> inputs;
    std::optional<double> mask_value;
  };

  std::map<CallName, MaskSources> sources_;
  std::vector<Call> waiting_;
};

/// Whether an entry of a model's "layers" is an operation rather than a layer.
bool is_operation(const Json& json);

}  // namespace tessera::detail
