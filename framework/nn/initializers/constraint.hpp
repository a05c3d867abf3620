#pragma once

#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A projection applied to a weight after every update (keras.constraints.Constraint).
class Constraint {
 public:
  virtual ~Constraint() = default;
  /// Keras' class name, "MaxNorm".
  virtual std::string class_name() const = 0;
  /// Returns the constraint's arguments by Keras' keys.
  virtual Json config() const = 0;
  /// Returns the weight's new value, with the same shape and dtype.
  virtual DTensor operator()(const DTensor& weight) const = 0;
};

/// A handle to a constraint, also by Keras' name: "max_norm". Empty by default.
class ConstraintHandle : public Handle<const Constraint> {
 public:
  ConstraintHandle() = default;
  using Handle::Handle;
  /// Creates the constraint with this name, with defaults. Throws ConfigError naming the nearest
  /// one.
  ConstraintHandle(const char* name);  // NOLINT: reads as data
};

namespace detail {

/// Creates the constraint with this Keras name, "max_norm", or class name, with defaults. Throws
/// ConfigError naming the nearest one.
ConstraintHandle make_constraint(const std::string& name);
/// The table of constraints by name, to which each class adds itself with a Registered.
ConfigFactories<ConstraintHandle>& constraint_factories();

}  // namespace detail

}  // namespace tessera
