#include <tessera/layers/normalization/normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/normalized_axes.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RMSNormalizationOptions& o, const Visit& visit) {
  AxesOption axis{o.axis};
  visit("axis", axis);
  visit("epsilon", o.epsilon);
}

namespace {

class RMSNormalizationLayer final : public Layer {
 public:
  explicit RMSNormalizationLayer(const RMSNormalizationOptions& options);
  std::string class_name() const override { return "RMSNormalization"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  RMSNormalizationOptions options_;
  Variable scale_;
};

const RegisteredLayer registered_rms_normalization("RMSNormalization", [](JsonObject& config) {
  return RMSNormalization(layer_options_from<RMSNormalizationOptions>(config));
});

RMSNormalizationLayer::RMSNormalizationLayer(const RMSNormalizationOptions& options)
    : Layer(common_options(options)), options_(options) {
  if (!options.axis.empty()) return;
  throw ConfigError("RMSNormalization " + options.name, "axis holds at least one axis", "none",
                    "leave it out for the last one");
}

Shape RMSNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const std::string where = "RMSNormalization " + path();
  const Shape extents = extents_of(input, normalized_axes(where, options_.axis, input));
  if (built()) check_as_built(where, extents, scale_.shape());
  return input;
}

void RMSNormalizationLayer::make_weights(const Shapes& inputs) {
  scale_ = add_weight(
      "scale", extents_of(inputs[0], normalized_axes(path(), options_.axis, inputs[0])), "ones");
}

DTensor RMSNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  const at::ScalarType dtype = c10::promoteTypes(inputs[0].dtype(), at::kFloat);
  const DTensor x = ops::cast(inputs[0], dtype);
  const std::vector<int64_t> axes = normalized_axes(path(), options_.axis, x.shape());
  const DTensor scale =
      ops::reshape(ops::cast(read(scale_), dtype), broadcastable_shape(x.shape(), axes));
  const DTensor factor = ops::rsqrt(ops::mean(ops::square(x), axes, true) + options_.epsilon);
  return ops::cast(x * factor * scale, dtype_policy().compute);
}

}  // namespace

RMSNormalization::RMSNormalization(const RMSNormalizationOptions& options)
    : LayerHandle(std::make_shared<RMSNormalizationLayer>(options)) {}

}  // namespace tessera
