#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/layers/layers.hpp>

namespace tessera {
namespace {

/// Of a layer that has the common options only.
template <class Handle>
LayerHandle plain(JsonObject& config) {
  return Handle(take_layer_options(config));
}

template <int Dimensions>
LayerHandle spatial(JsonObject& config) {
  return spatial_dropout_from_config(Dimensions, config);
}

}  // namespace

void add_built_in_layers(LayerFactories& factories) {
  factories.insert({
      {"Activation", Activation::from_config},
      {"ActivityRegularization", ActivityRegularization::from_config},
      {"Add", plain<Add>},
      {"AlphaDropout", AlphaDropout::from_config},
      {"Average", plain<Average>},
      {"BatchNormalization", BatchNormalization::from_config},
      {"Concatenate", Concatenate::from_config},
      {"Dot", Dot::from_config},
      {"Dropout", Dropout::from_config},
      {"ELU", ELU::from_config},
      {"EinsumDense", EinsumDense::from_config},
      {"Embedding", Embedding::from_config},
      {"Flatten", Flatten::from_config},
      {"GaussianDropout", GaussianDropout::from_config},
      {"GaussianNoise", GaussianNoise::from_config},
      {"GroupNormalization", GroupNormalization::from_config},
      {"Identity", plain<Identity>},
      {"LayerNormalization", LayerNormalization::from_config},
      {"LeakyReLU", LeakyReLU::from_config},
      {"Masking", Masking::from_config},
      {"Maximum", plain<Maximum>},
      {"Minimum", plain<Minimum>},
      {"Multiply", plain<Multiply>},
      {"Normalization", Normalization::from_config},
      {"PReLU", PReLU::from_config},
      {"Permute", Permute::from_config},
      {"RMSNormalization", RMSNormalization::from_config},
      {"ReLU", ReLU::from_config},
      {"RepeatVector", RepeatVector::from_config},
      {"Rescaling", Rescaling::from_config},
      {"Reshape", Reshape::from_config},
      {"Softmax", Softmax::from_config},
      {"SpatialDropout1D", spatial<1>},
      {"SpatialDropout2D", spatial<2>},
      {"SpatialDropout3D", spatial<3>},
      {"Subtract", plain<Subtract>},
      {"UnitNormalization", UnitNormalization::from_config},
  });
}

}  // namespace tessera
