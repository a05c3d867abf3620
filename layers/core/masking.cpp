#include <tessera/layers/core/masking.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(MaskingOptions& o, const Visit& visit) {
  visit("mask_value", o.mask_value);
}

namespace {

class MaskingLayer final : public LayerOf<MaskingLayer, MaskingOptions> {
 public:
  static constexpr const char* keras_name = "Masking";
  using LayerOf::LayerOf;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

const RegisteredLayerOf<MaskingLayer> registered_masking;

Shape MaskingLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() > 1) return input;
  throw ShapeError(where(), "the input has features after the batch axis", to_string(input),
                   "expand it first");
}

DTensor MaskingLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  const DTensor value = scalar(arguments_.mask_value, x.mesh(), x.dtype());
  const DTensor counts = ops::any(ops::not_equal(x, value), {-1}, true);
  const DTensor y = ops::where(counts, x, scalar(0, x.mesh(), x.dtype()));
  return y.with_mask(ops::squeeze(counts, {-1}));
}

}  // namespace

Masking::Masking(const MaskingOptions& options) : LayerHandle(make_layer<MaskingLayer>(options)) {}

}  // namespace tessera
