#include <tessera/framework/nn/internal/unsaved_layer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

void check_saved(const Layer& layer) {
  if (dynamic_cast<const UnsavedLayer*>(&layer)) {
    throw ConfigError(layer.class_name() + " " + layer.path(),
                      "the layers of a saved model can be made from their configurations",
                      "a layer of a C++ function",
                      "write the function as a class derived from Layer and register it with "
                      "register_layer(), or save the weights only");
  }
  for (const auto& inner : layer.sublayers()) check_saved(*inner);
}

}  // namespace tessera::detail
