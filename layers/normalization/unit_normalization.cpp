#include <tessera/layers/normalization/normalization.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/l2_normalize.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(UnitNormalizationOptions& o, const Visit& visit) {
  AxesOption axis{o.axis};
  visit("axis", axis);
}

namespace {

class UnitNormalizationLayer final : public Layer {
 public:
  explicit UnitNormalizationLayer(const UnitNormalizationOptions& options);
  std::string class_name() const override { return "UnitNormalization"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  UnitNormalizationOptions options_;
};

const RegisteredLayer registered_unit_normalization("UnitNormalization", [](JsonObject& config) {
  return UnitNormalization(layer_options_from<UnitNormalizationOptions>(config));
});

UnitNormalizationLayer::UnitNormalizationLayer(const UnitNormalizationOptions& options)
    : Layer(common_options(options)), options_(options) {
  if (!options.axis.empty()) return;
  throw ConfigError("UnitNormalization " + options.name, "axis holds at least one axis", "none",
                    "give -1 for the last");
}

Shape UnitNormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  for (const int64_t axis : options_.axis) {
    normalize_axis(axis, static_cast<int64_t>(input.size()), "UnitNormalization " + path());
  }
  return input;
}

DTensor UnitNormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  return l2_normalize(inputs[0], options_.axis, 1e-12);
}

}  // namespace

UnitNormalization::UnitNormalization(const UnitNormalizationOptions& options)
    : LayerHandle(std::make_shared<UnitNormalizationLayer>(options)) {}

}  // namespace tessera
