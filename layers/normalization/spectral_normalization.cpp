#include <tessera/layers/normalization/spectral_normalization.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/l2_normalize.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/wrapper.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SpectralNormalizationOptions& o, const Visit& visit) {
  visit("power_iterations", o.power_iterations);
}

namespace {

class SpectralNormalizationLayer final
    : public LayerOf<SpectralNormalizationLayer, SpectralNormalizationOptions, WrapperLayer> {
 public:
  static constexpr const char* keras_name = "SpectralNormalization";
  SpectralNormalizationLayer(const LayerHandle& layer, const SpectralNormalizationOptions& options);
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return inner(0)->output_shape(inputs); }
  std::vector<Variable> weights() const override;
  /// A step reads the kernel, assigns it and reads it again.
  bool can_be_replayed() const override { return false; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  void normalize_kernel();

  Variable kernel_, vector_u_;
};

const RegisteredLayer registered_spectral_normalization(
    "SpectralNormalization", [](JsonObject& config) {
      const auto options = layer_options_from<SpectralNormalizationOptions>(config);
      const Json inner = config.take<Json>("layer");
      return SpectralNormalization(layer_from_config(inner, config.path().key("layer")), options);
    });

SpectralNormalizationLayer::SpectralNormalizationLayer(const LayerHandle& layer,
                                                       const SpectralNormalizationOptions& options)
    : LayerOf(options) {
  if (options.power_iterations < 1) {
    throw ConfigError(where(), "power_iterations is at least 1", str(options.power_iterations),
                      "leave it out for 1");
  }
  add_inner("layer", layer);
}

Json SpectralNormalizationLayer::config() const {
  Json json = LayerOf::config();
  json["layer"] = layer_json(*inner(0));
  return json;
}

std::vector<Variable> SpectralNormalizationLayer::weights() const {
  // As in Keras, where the kernel is a weight of this layer, too.
  std::vector<Variable> list;
  if (kernel_.defined()) list.push_back(kernel_);
  for (Variable& weight : Layer::weights()) {
    if (!kernel_.defined() || !weight.is(kernel_)) list.push_back(std::move(weight));
  }
  return list;
}

void SpectralNormalizationLayer::make_weights(const Shapes& inputs) {
  inner(0)->build(inputs);
  for (const Variable& weight : inner(0)->own_weights()) {
    const std::string& name = weight.path();
    if (name.ends_with("/kernel") || name.ends_with("/embeddings")) kernel_ = weight;
  }
  if (!kernel_.defined()) {
    throw ConfigError(where(), "the layer has a weight \"kernel\" or \"embeddings\"",
                      inner(0)->class_name(), "wrap a layer such as Dense, Conv2D or Embedding");
  }
  vector_u_ = add_weight("vector_u", {1, kernel_.shape().back()}, TruncatedNormal({.stddev = 0.02}),
                         {.trainable = false, .dtype = kernel_.dtype()});
}

void SpectralNormalizationLayer::normalize_kernel() {
  const NoRecording no_tape;
  // Sums in float16 and bfloat16 overflow or lose precision.
  const DTensor kernel = widened(kernel_.read());
  const int64_t columns = kernel_.shape().back();
  const DTensor matrix = ops::reshape(kernel, {kernel.numel() / columns, columns});
  const DTensor before = widened(vector_u_.read());
  DTensor u = before, v;
  for (int64_t i = 0; i < arguments_.power_iterations; ++i) {
    v = l2_normalize(ops::matmul(u, matrix, false, true), 1);
    u = l2_normalize(ops::matmul(v, matrix), 1);
  }
  const DTensor norm = ops::sum(ops::matmul(v, matrix) * u);
  const DTensor zero = ops::all(kernel == 0);
  vector_u_.assign_in_call(ops::where(zero, before, u));
  kernel_.assign_in_call(ops::where(zero, kernel, kernel / norm));
}

DTensor SpectralNormalizationLayer::call(const Inputs& inputs, const CallContext& context) {
  if (context.training) normalize_kernel();
  return (*inner(0))(inputs, context);
}

}  // namespace

SpectralNormalization::SpectralNormalization(const LayerHandle& layer,
                                             const SpectralNormalizationOptions& options)
    : LayerHandle(std::make_shared<SpectralNormalizationLayer>(layer, options)) {}

}  // namespace tessera
