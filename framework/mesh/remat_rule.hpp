#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Chooses what a tape saves of a computation that it rematerializes (jax.checkpoint_policies),
/// besides the values that enter and leave it, integers and booleans.
struct RematPolicy {
  /// Operations whose results are saved, by name: "einsum"; "matmuls" stands for all products and
  /// convolutions (jax.checkpoint_policies.dots_saveable).
  std::vector<std::string> save = {};
  /// Whether results of operations that communicate are computed again too, by communicating again,
  /// and not saved.
  bool collectives = false;
  bool operator==(const RematPolicy&) const = default;
};

/// Rematerializes each layer whose path equals `match` or is matched in full by it as an RE2
/// expression. Layers within such a layer belong to it.
struct RematRule {
  std::string match = {};
  RematPolicy policy = {};
  bool operator==(const RematRule&) const = default;
};

}  // namespace tessera
