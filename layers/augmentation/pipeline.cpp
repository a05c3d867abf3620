#include <tessera/layers/augmentation/pipeline.hpp>

#include <algorithm>

#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

namespace {

class PipelineLayer final : public Layer, public LabeledLayer {
 public:
  PipelineLayer(const std::vector<LayerHandle>& layers, const PipelineOptions& options);
  std::string class_name() const override { return "Pipeline"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  Shapes output_shapes(const Shapes& inputs) const override;
  bool can_be_replayed() const override {
    return std::all_of(sublayers().begin(), sublayers().end(),
                       [](const auto& layer) { return layer->can_be_replayed(); });
  }
  LabeledImages call_labeled(const LabeledImages& batch, const CallContext& context) override;

 protected:
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
};

const RegisteredLayer registered_pipeline("Pipeline", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  std::vector<LayerHandle> layers;
  const JsonPath path = config.path().key("layers");
  for (const Json& layer : config.take<std::vector<Json>>("layers")) {
    layers.push_back(layer_from_config(layer, path.index(layers.size())));
  }
  return Pipeline(layers, {.name = options.name});
});

/// Replaces `values` by f of them; labels skip a layer that does not take them.
template <class Values, class Function>
void pass(const Layer& layer, Values& values, const Function& f) {
  const auto* const augmentation = dynamic_cast<const AugmentationLayer*>(&layer);
  const bool pipeline = dynamic_cast<const PipelineLayer*>(&layer) != nullptr;
  if (values.size() == 1 || pipeline || (augmentation && augmentation->takes_labels())) {
    values = f(values);
  } else {
    values[0] = f(Values{values[0]})[0];
  }
}

PipelineLayer::PipelineLayer(const std::vector<LayerHandle>& layers, const PipelineOptions& options)
    : Layer({.name = options.name}) {
  for (const LayerHandle& layer : layers) track(layer);
}

/// Writes the layers and the name, which is all that Keras' class takes.
Json PipelineLayer::config() const {
  Json layers = Json::array();
  for (const auto& layer : sublayers()) layers.push_back(layer_json(*layer));
  return {{"layers", layers}, {"name", name()}};
}

Shapes PipelineLayer::output_shapes(const Shapes& inputs) const {
  Shapes shapes = inputs;
  for (const auto& layer : sublayers()) {
    pass(*layer, shapes, [&](const Shapes& in) { return layer->output_shapes(in); });
  }
  return shapes;
}

std::vector<DTensor> PipelineLayer::call_all(const Inputs& inputs, const CallContext& context) {
  Inputs values = inputs;
  for (const auto& layer : sublayers()) {
    pass(*layer, values, [&](const Inputs& in) { return layer->outputs(in, context); });
  }
  return values;
}

LabeledImages PipelineLayer::call_labeled(const LabeledImages& batch, const CallContext& context) {
  LabeledImages result = batch;
  for (const auto& layer : sublayers()) result = detail::call_labeled(*layer, result, context);
  return result;
}

}  // namespace

Pipeline::Pipeline(const std::vector<LayerHandle>& layers, const PipelineOptions& options)
    : AugmentationHandle(std::make_shared<PipelineLayer>(layers, options)) {}

}  // namespace tessera
