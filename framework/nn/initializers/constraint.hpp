#pragma once

#include <memory>
#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// What a weight's values are brought back to after every update (keras.constraints.Constraint).
class Constraint {
 public:
  virtual ~Constraint() = default;
  /// Keras' class name, "MaxNorm".
  virtual std::string class_name() const = 0;
  virtual Json config() const = 0;
  /// The weight's new value, of its shape and dtype.
  virtual DTensor operator()(const DTensor& weight) const = 0;
};

/// A handle to a constraint, also by Keras' name: "max_norm". None by default.
class ConstraintHandle {
 public:
  ConstraintHandle() = default;
  ConstraintHandle(std::shared_ptr<const Constraint> made)
      : made_(std::move(made)) {}  // NOLINT: reads as data
  /// Throws ConfigError naming the nearest one.
  ConstraintHandle(const char* name);  // NOLINT
  const Constraint& operator*() const { return *made_; }
  const Constraint* operator->() const { return made_.get(); }
  explicit operator bool() const { return made_ != nullptr; }

 private:
  std::shared_ptr<const Constraint> made_;
};

/// The constraint of a Keras name, "max_norm", or class name, with its defaults. Throws ConfigError
/// naming the nearest one.
ConstraintHandle make_constraint(const std::string& name);

}  // namespace tessera
