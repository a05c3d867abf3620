#include <tessera/layers/normalization/normalization.hpp>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/layer_norm.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/normalized_axes.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RMSNormalizationOptions& o, const Visit& visit) {
  AxesOption axis{o.axis};
  CallOption add_unit_offset{o.add_unit_offset};
  visit("axis", axis);
  visit("epsilon", o.epsilon);
  visit("add_unit_offset", add_unit_offset);
}

namespace {

class RMSNormalizationLayer final : public LayerOf<RMSNormalizationLayer, RMSNormalizationOptions> {
 public:
  static constexpr const char* keras_name = "RMSNormalization";
  explicit RMSNormalizationLayer(const RMSNormalizationOptions& options);
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  DTensor factors() const;

  Variable scale_;
};

const RegisteredLayerOf<RMSNormalizationLayer> registered_rms_normalization;

RMSNormalizationLayer::RMSNormalizationLayer(const RMSNormalizationOptions& options)
    : LayerOf(options) {
  if (!options.axis.empty()) return;
  throw ConfigError(where(), "axis holds at least one axis", "none",
                    "leave it out for the last one");
}

Shape RMSNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const Shape extents = extents_of(input, normalized_axes(where(), arguments_.axis, input));
  if (built()) check_as_built(where(), extents, scale_.shape());
  return input;
}

void RMSNormalizationLayer::make_weights(const Shapes& inputs) {
  scale_ = add_weight("scale",
                      extents_of(inputs[0], normalized_axes(path(), arguments_.axis, inputs[0])),
                      arguments_.add_unit_offset ? "zeros" : "ones");
}

/// Returns the factors of the normalized values: `scale`, or 1 + scale in at least float32.
DTensor RMSNormalizationLayer::factors() const {
  if (!arguments_.add_unit_offset) return read(scale_);
  return read(scale_, c10::promoteTypes(dtype_policy().compute, at::kFloat)) + 1;
}

DTensor RMSNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  const std::vector<int64_t> axes = normalized_axes(path(), arguments_.axis, x.shape());
  const DTensor scale = ops::reshape(factors(), broadcastable_shape(x.shape(), axes));
  return ops::cast(ops::rms_normalization(x, scale, axes, arguments_.epsilon),
                   dtype_policy().compute);
}

}  // namespace

RMSNormalization::RMSNormalization(const RMSNormalizationOptions& options)
    : LayerHandle(make_layer<RMSNormalizationLayer>(options)) {}

}  // namespace tessera
