#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

/// How a weight gets its first values (keras.initializers). Draws are stateless: the same numbers
/// whatever the mesh and layout.
class Initializer {
 public:
  virtual ~Initializer() = default;
  /// Keras' class name, "GlorotUniform".
  virtual std::string class_name() const = 0;
  /// Values in default_layout(rank), so that a weight is drawn straight into its shards. `seed` is
  /// the weight's own; an initializer that was given a seed s uses the pair (s, 0), as Keras on
  /// TensorFlow does.
  virtual DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const = 0;
  virtual Json config() const { return Json::object(); }
};

/// An initializer by name ("glorot_uniform") or made with options (GlorotUniform({.seed = 1})).
class InitializerHandle {
 public:
  InitializerHandle() = default;
  InitializerHandle(const char* name)
      : InitializerHandle(std::string(name)) {}  // NOLINT: reads as data
  /// Throws ConfigError naming the nearest one.
  InitializerHandle(const std::string& name);                                             // NOLINT
  InitializerHandle(std::shared_ptr<const Initializer> made) : made_(std::move(made)) {}  // NOLINT
  const Initializer& operator*() const { return *made_; }
  const Initializer* operator->() const { return made_.get(); }
  explicit operator bool() const { return made_ != nullptr; }

 private:
  std::shared_ptr<const Initializer> made_;
};

}  // namespace tessera
