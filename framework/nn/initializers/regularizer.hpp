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
  /// The regularizer's arguments by Keras' keys.
  virtual Json config() const = 0;
  /// The penalty, 0-d; often pending over the dimensions that cut `x`.
  virtual DTensor operator()(const DTensor& x) const = 0;
  /// Whether a training step may be recorded and replayed operation by operation, without calling
  /// the regularizer again. A program's own one overrides it where a call does nothing but
  /// operations.
  virtual bool can_be_replayed() const { return false; }
};

/// A handle to a regularizer, also by Keras' name: "l2". None by default.
class RegularizerHandle : public detail::Handle<const Regularizer> {
 public:
  RegularizerHandle() = default;
  using Handle::Handle;
  /// The regularizer of this name with its defaults. Throws ConfigError naming the nearest one.
  RegularizerHandle(const char* name);  // NOLINT: reads as data
};

namespace detail {

/// The regularizer of a Keras name, "l1", "l2", "l1_l2", or class name, with its defaults. Throws
/// ConfigError naming the nearest one.
RegularizerHandle make_regularizer(const std::string& name);
/// The table of regularizers by name, to which each class adds itself by a Registered.
ConfigFactories<RegularizerHandle>& regularizer_factories();

}  // namespace detail

}  // namespace tessera
