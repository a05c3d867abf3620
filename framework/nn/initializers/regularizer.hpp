#pragma once

#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A penalty on a weight or an output, added to the loss (keras.regularizers.Regularizer).
class Regularizer {
 public:
  virtual ~Regularizer() = default;
  /// Keras' class name, "L2".
  virtual std::string class_name() const = 0;
  /// Returns the regularizer's arguments by Keras' keys.
  virtual Json config() const = 0;
  /// Returns the penalty, 0-d; usually a partial sum over the mesh dimensions that shard `x`.
  /// Tessera's own regularizers return float32 for float16 and bfloat16.
  virtual DTensor operator()(const DTensor& x) const = 0;
  /// Whether a training step may be captured and replayed operation by operation, without calling
  /// the regularizer again. Override it in your own regularizer if a call consists of operations
  /// only.
  virtual bool can_be_replayed() const { return false; }
};

/// A handle to a regularizer, also by Keras' name: "l2". Empty by default.
class RegularizerHandle : public Handle<const Regularizer> {
 public:
  RegularizerHandle() = default;
  using Handle::Handle;
  /// Creates the regularizer with this name, with defaults. Throws ConfigError naming the nearest
  /// one.
  RegularizerHandle(const char* name);  // NOLINT: reads as data
};

namespace detail {

/// Creates the regularizer with this Keras name, "l1", "l2", "l1_l2", or class name, with defaults.
/// Throws ConfigError naming the nearest one.
RegularizerHandle make_regularizer(const std::string& name);
/// The table of regularizers by name, to which each class adds itself with a Registered.
ConfigFactories<RegularizerHandle>& regularizer_factories();

}  // namespace detail

}  // namespace tessera
