#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/layers/layers.hpp>

namespace tessera {

void add_built_in_layers(LayerFactories& factories) {
  factories.insert({
      {"AdditiveAttention", AdditiveAttention::from_config},
      {"Attention", Attention::from_config},
      {"AveragePooling1D", AveragePooling1D::from_config},
      {"AveragePooling2D", AveragePooling2D::from_config},
      {"Bidirectional", Bidirectional::from_config},
      {"Conv1D", Conv1D::from_config},
      {"Conv1DTranspose", Conv1DTranspose::from_config},
      {"Conv2D", Conv2D::from_config},
      {"Conv2DTranspose", Conv2DTranspose::from_config},
      {"Conv3D", Conv3D::from_config},
      {"Cropping1D", Cropping1D::from_config},
      {"Cropping2D", Cropping2D::from_config},
      {"DepthwiseConv1D", DepthwiseConv1D::from_config},
      {"DepthwiseConv2D", DepthwiseConv2D::from_config},
      {"GRU", GRU::from_config},
      {"GlobalAveragePooling1D", GlobalAveragePooling1D::from_config},
      {"GlobalAveragePooling2D", GlobalAveragePooling2D::from_config},
      {"GlobalMaxPooling1D", GlobalMaxPooling1D::from_config},
      {"GlobalMaxPooling2D", GlobalMaxPooling2D::from_config},
      {"LSTM", LSTM::from_config},
      {"MaxPooling1D", MaxPooling1D::from_config},
      {"MaxPooling2D", MaxPooling2D::from_config},
      {"MultiHeadAttention", MultiHeadAttention::from_config},
      {"SeparableConv1D", SeparableConv1D::from_config},
      {"SeparableConv2D", SeparableConv2D::from_config},
      {"SimpleRNN", SimpleRNN::from_config},
      {"StringLookup", StringLookup::from_config},
      {"TextVectorization", TextVectorization::from_config},
      {"TimeDistributed", TimeDistributed::from_config},
      {"UpSampling1D", UpSampling1D::from_config},
      {"UpSampling2D", UpSampling2D::from_config},
      {"ZeroPadding1D", ZeroPadding1D::from_config},
      {"ZeroPadding2D", ZeroPadding2D::from_config},
  });
}

}  // namespace tessera
