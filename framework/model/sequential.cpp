#include <tessera/framework/model/sequential.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

SequentialModel::SequentialModel(const std::vector<LayerHandle>& layers,
                                 const SequentialOptions& options)
    : Model({options.name, "", options.trainable}) {
  for (const LayerHandle& layer : layers) add(layer);
}

Json SequentialModel::config() const {
  Json json = Json::object();
  json["name"] = name();
  json["layers"] = Json::array();
  for (const auto& layer : sublayers()) {
    json["layers"].push_back({{"class_name", layer->class_name()}, {"config", layer->config()}});
  }
  return json;
}

Shape SequentialModel::output_shape(const Shapes& inputs) const {
  Shape shape = only(inputs);
  for (const auto& layer : sublayers()) shape = layer->output_shape({shape});
  return shape;
}

void SequentialModel::add(const LayerHandle& layer) {
  if (built()) {
    throw StateError("Sequential " + path(), "layers are added before the model is built",
                     layer->class_name(), "add it first, or make a new model of these layers");
  }
  track(layer);
}

void SequentialModel::build_layers(const Shapes& inputs) {
  Shape shape = inputs[0];
  for (const auto& layer : sublayers()) {
    layer->build({shape});
    shape = layer->output_shape({shape});
  }
}

DTensor SequentialModel::call(const Inputs& inputs, const CallContext& context) {
  DTensor value = inputs[0];
  for (const auto& layer : sublayers()) value = (*layer)(value, context);
  return value;
}

Sequential::Sequential(std::initializer_list<LayerHandle> layers, const SequentialOptions& options)
    : Sequential(std::vector<LayerHandle>(layers), options) {}

Sequential::Sequential(const std::vector<LayerHandle>& layers, const SequentialOptions& options)
    : ModelHandle(std::make_shared<SequentialModel>(layers, options)) {}

void Sequential::add(const LayerHandle& layer) const {
  static_cast<SequentialModel&>(model()).add(layer);
}

}  // namespace tessera
