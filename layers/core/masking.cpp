#include <tessera/layers/core/masking.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(MaskingOptions& o, const Visit& visit) {
  visit("mask_value", o.mask_value);
}

namespace {

class MaskingLayer final : public Layer {
 public:
  explicit MaskingLayer(const MaskingOptions& options)
      : Layer(common_options(options)), options_(options) {}
  std::string class_name() const override { return "Masking"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  MaskingOptions options_;
};

const RegisteredLayer registered_masking("Masking", [](JsonObject& config) {
  return Masking(layer_options_from<MaskingOptions>(config));
});

Shape MaskingLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() > 1) return input;
  throw ShapeError("Masking " + path(), "the input has features after the batch axis",
                   to_string(input), "expand it first");
}

DTensor MaskingLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  const DTensor value = scalar(options_.mask_value, x.mesh(), x.dtype());
  const DTensor counts = ops::any(ops::not_equal(x, value), {-1}, true);
  const DTensor y = ops::where(counts, x, scalar(0, x.mesh(), x.dtype()));
  return y.with_mask(ops::squeeze(counts, {-1}));
}

}  // namespace

Masking::Masking(const MaskingOptions& options)
    : LayerHandle(std::make_shared<MaskingLayer>(options)) {}

}  // namespace tessera
