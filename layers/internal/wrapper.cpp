#include <tessera/layers/internal/wrapper.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::shared_ptr<Layer> WrapperLayer::add_inner(const LayerHandle& handle) {
  if (handle->is_model()) {
    throw ConfigError("wrapper " + name(), "it is made of a layer", handle->class_name(),
                      "give a layer of its own");
  }
  return track(handle).layer();
}

Json wrapped_json(const Layer& layer) {
  return {{"module", "keras.layers"},
          {"class_name", layer.class_name()},
          {"config", layer.config()},
          {"registered_name", nullptr}};
}

}  // namespace tessera::detail
