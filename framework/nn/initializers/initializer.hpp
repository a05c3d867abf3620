#pragma once

#include <memory>
#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

/// How a weight gets its first values (keras.initializers.Initializer). Draws are stateless: the
/// same numbers whatever the mesh and layout.
class Initializer {
 public:
  virtual ~Initializer() = default;
  /// Keras' class name, "GlorotUniform".
  virtual std::string class_name() const = 0;
  /// Values in default_layout(rank), so that a weight is drawn straight into its shards. `seed` is
  /// the weight's own; an initializer that was given a seed s uses the pair (s, 0), as Keras on
  /// TensorFlow does.
  virtual DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const = 0;
  /// The initializer's arguments by Keras' keys.
  virtual Json config() const { return Json::object(); }
};

/// A handle to an initializer, also by Keras' name: "glorot_uniform".
class InitializerHandle : public detail::Handle<const Initializer> {
 public:
  InitializerHandle() = default;
  using Handle::Handle;
  InitializerHandle(const char* name)
      : InitializerHandle(std::string(name)) {}  // NOLINT: reads as data
  /// The initializer of this name with its defaults. Throws ConfigError naming the nearest one.
  InitializerHandle(const std::string& name);  // NOLINT
};

namespace detail {

/// The initializer of a Keras name, "glorot_uniform" or "GlorotUniform", with its defaults. Throws
/// ConfigError naming the nearest one.
InitializerHandle make_initializer(const std::string& name);
/// The table of initializers by name, to which each class adds itself by a Registered.
ConfigFactories<InitializerHandle>& initializer_factories();

}  // namespace detail

}  // namespace tessera
