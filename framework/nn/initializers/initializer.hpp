#pragma once

#include <memory>
#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

/// Draws a weight's initial values (keras.initializers.Initializer). Draws are stateless: the same
/// numbers on every mesh and in every layout.
class Initializer {
 public:
  virtual ~Initializer() = default;
  /// Keras' class name, "GlorotUniform".
  virtual std::string class_name() const = 0;
  /// Draws values in default_layout(rank), so that each shard of a weight is drawn on its device.
  /// `seed` is the weight's own; an initializer with a seed s of its own uses the pair (s, 0), like
  /// Keras on TensorFlow.
  virtual DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const = 0;
  /// Returns the initializer's arguments by Keras' keys.
  virtual Json config() const { return Json::object(); }
};

/// A handle to an initializer, also by Keras' name: "glorot_uniform".
class InitializerHandle : public Handle<const Initializer> {
 public:
  InitializerHandle() = default;
  using Handle::Handle;
  InitializerHandle(const char* name)
      : InitializerHandle(std::string(name)) {}  // NOLINT: reads as data
  /// Creates the initializer with this name, with defaults. Throws ConfigError naming the nearest
  /// one.
  InitializerHandle(const std::string& name);  // NOLINT
};

namespace detail {

/// Creates the initializer with this Keras name, "glorot_uniform" or "GlorotUniform", with
/// defaults. Throws ConfigError naming the nearest one.
InitializerHandle make_initializer(const std::string& name);
/// The table of initializers by name, to which each class adds itself with a Registered.
ConfigFactories<InitializerHandle>& initializer_factories();

}  // namespace detail

}  // namespace tessera
