#include <tessera/layers/normalization/normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/l2_normalize.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(UnitNormalizationOptions& o, const Visit& visit) {
  AxesOption axis{o.axis};
  visit("axis", axis);
}

namespace {

class UnitNormalizationLayer final
    : public LayerOf<UnitNormalizationLayer, UnitNormalizationOptions> {
 public:
  static constexpr const char* keras_name = "UnitNormalization";
  explicit UnitNormalizationLayer(const UnitNormalizationOptions& options);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

const RegisteredLayerOf<UnitNormalizationLayer> registered_unit_normalization;

UnitNormalizationLayer::UnitNormalizationLayer(const UnitNormalizationOptions& options)
    : LayerOf(options) {
  if (!options.axis.empty()) return;
  throw ConfigError(where(), "axis holds at least one axis", "none", "give -1 for the last");
}

Shape UnitNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  for (const int64_t axis : arguments_.axis) {
    normalize_axis(axis, static_cast<int64_t>(input.size()), where());
  }
  return input;
}

DTensor UnitNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  return l2_normalize(inputs[0], arguments_.axis, 1e-12);
}

}  // namespace

UnitNormalization::UnitNormalization(const UnitNormalizationOptions& options)
    : LayerHandle(make_layer<UnitNormalizationLayer>(options)) {}

}  // namespace tessera
