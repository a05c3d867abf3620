#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/layers/layers.hpp>

namespace tessera {
namespace {

/// Of a layer that has the common options only.
template <class Handle>
LayerHandle plain(JsonObject& config) {
  return Handle(take_layer_options(config));
}

}  // namespace

void add_built_in_layers(LayerFactories& factories) {
  factories.insert({
      {"Activation", Activation::from_config},
      {"Add", plain<Add>},
      {"Average", plain<Average>},
      {"BatchNormalization", BatchNormalization::from_config},
      {"Concatenate", Concatenate::from_config},
      {"Dense", Dense::from_config},
      {"Dot", Dot::from_config},
      {"Dropout", Dropout::from_config},
      {"Flatten", Flatten::from_config},
      {"Maximum", plain<Maximum>},
      {"Minimum", plain<Minimum>},
      {"Multiply", plain<Multiply>},
      {"Normalization", Normalization::from_config},
      {"Permute", Permute::from_config},
      {"RepeatVector", RepeatVector::from_config},
      {"Rescaling", Rescaling::from_config},
      {"Reshape", Reshape::from_config},
      {"StringLookup", StringLookup::from_config},
      {"Subtract", plain<Subtract>},
      {"TextVectorization", TextVectorization::from_config},
  });
}

}  // namespace tessera
