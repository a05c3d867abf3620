#pragma once

#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// What a weight's values are brought back to after every update (keras.constraints.Constraint).
class Constraint {
 public:
  virtual ~Constraint() = default;
  /// Keras' class name, "MaxNorm".
  virtual std::string class_name() const = 0;
  /// The constraint's arguments by Keras' keys.
  virtual Json config() const = 0;
  /// The weight's new value, of its shape and dtype.
  virtual DTensor operator()(const DTensor& weight) const = 0;
};

/// A handle to a constraint, also by Keras' name: "max_norm". None by default.
class ConstraintHandle : public detail::Handle<const Constraint> {
 public:
  ConstraintHandle() = default;
  using Handle::Handle;
  /// The constraint of this name with its defaults. Throws ConfigError naming the nearest one.
  ConstraintHandle(const char* name);  // NOLINT: reads as data
};

namespace detail {

/// The constraint of a Keras name, "max_norm", or class name, with its defaults. Throws ConfigError
/// naming the nearest one.
ConstraintHandle make_constraint(const std::string& name);
/// The table of constraints by name, to which each class adds itself by a Registered.
ConfigFactories<ConstraintHandle>& constraint_factories();

}  // namespace detail

}  // namespace tessera
