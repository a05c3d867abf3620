#include <tessera/layers/recurrent/time_distributed.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/time_axis.hpp>
#include <tessera/layers/internal/wrapper.hpp>

namespace tessera {

using namespace detail;

namespace {

class TimeDistributedLayer final
    : public LayerOf<TimeDistributedLayer, LayerOptions, WrapperLayer> {
 public:
  static constexpr const char* keras_name = "TimeDistributed";
  TimeDistributedLayer(const LayerHandle& layer, const LayerOptions& options);
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

const RegisteredLayer registered_time_distributed("TimeDistributed", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const Json inner = config.take<Json>("layer");
  return TimeDistributed(layer_from_config(inner, config.path().key("layer")), options);
});

TimeDistributedLayer::TimeDistributedLayer(const LayerHandle& layer, const LayerOptions& options)
    : LayerOf(options) {
  add_inner("layer", layer);
}

Json TimeDistributedLayer::config() const {
  Json json = LayerOf::config();
  json["layer"] = layer_json(*inner(0));
  return json;
}

Shape TimeDistributedLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() < 3 || input[1] == 0) {
    throw ShapeError(where(), "a sequence has axes batch, time and more", to_string(input),
                     "expand it first");
  }
  Shape shape = inner(0)->output_shape({step_of(input)});
  shape.insert(shape.begin() + 1, input[1]);
  return shape;
}

void TimeDistributedLayer::make_weights(const Shapes& inputs) {
  inner(0)->build({step_of(inputs[0])});
}

DTensor TimeDistributedLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor mask = inputs[0].mask();
  std::vector<DTensor> masks;
  if (mask.defined() && mask.rank() > 1 && inner(0)->supports_masking()) {
    if (mask.size(1) != inputs[0].size(1)) {
      throw ShapeError(where(), str("a mask has the ", inputs[0].size(1), " steps of its input"),
                       to_string(mask.shape()), "mask every step");
    }
    masks = ops::unstack(mask, 1);
  }
  std::vector<DTensor> steps = ops::unstack(inputs[0], 1);
  for (size_t t = 0; t < steps.size(); ++t) {
    if (!masks.empty()) steps[t] = steps[t].with_mask(masks[t]);
    steps[t] = (*inner(0))(steps[t], context);
  }
  return ops::stack(steps, 1);
}

}  // namespace

TimeDistributed::TimeDistributed(const LayerHandle& layer, const LayerOptions& options)
    : LayerHandle(std::make_shared<TimeDistributedLayer>(layer, options)) {}

}  // namespace tessera
