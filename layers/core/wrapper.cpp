#include <tessera/layers/core/wrapper.hpp>

#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera {

using namespace detail;

Wrapper::Wrapper(const LayerHandle& layer, const LayerOptions& options)
    : Layer(options), layer_(track("layer", layer)) {}

LayerHandle Wrapper::layer_from(JsonObject& config) {
  const Json layer = config.take<Json>("layer");
  return layer_from_config(layer, config.path().key("layer"));
}

Json Wrapper::config() const {
  Json json = Layer::config();
  json["layer"] = layer_json(*layer_.layer());
  return json;
}

void Wrapper::make_weights(const Shapes& inputs) { layer_->build(inputs); }

}  // namespace tessera
