#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/remat_rule.hpp>

namespace tessera {

/// Chooses what a RematScope rematerializes of the layers that are made in it.
enum class RematMode : uint8_t {
  none,            ///< nothing
  full,            ///< each layer; of a model its layers
  activations,     ///< the activation functions of layers, wherever their results are read
  larger_than,     ///< each layer with more output elements than output_size_threshold
  list_of_layers,  ///< each layer or model whose name is in layer_names
};

/// The arguments of keras.RematScope, and what is saved nevertheless.
struct RematScopeOptions {
  RematMode mode = RematMode::full;      ///< the layers, or parts of layers
  int64_t output_size_threshold = 1024;  ///< elements of all outputs of a layer, batch included
  std::vector<std::string> layer_names = {};  ///< names of layers
  RematPolicy policy = {};                    ///< what is saved of them nevertheless
};

namespace detail {
struct LayerRemat;
}

/// Layers that this thread makes while it is alive compute their inner values again in the backward
/// pass instead of saving them (keras.RematScope). The innermost scope counts. A layer within a
/// rematerialized layer is part of it.
///
///     const RematScope scope({.mode = RematMode::list_of_layers, .layer_names = {"up", "down"}});
///
/// CompileOptions::remat and the key "remat" of a layouts file choose layers of an existing model.
/// Throws ConfigError for an operation of the policy that does not exist.
class RematScope {
 public:
  explicit RematScope(const RematScopeOptions& options = {});

 private:
  detail::ScopedValue<std::shared_ptr<const detail::LayerRemat>> remat_;
};

}  // namespace tessera
