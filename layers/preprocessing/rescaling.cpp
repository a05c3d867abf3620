#include <tessera/layers/preprocessing/rescaling.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RescalingOptions& o, const Visit& visit) {
  visit("offset", o.offset);
}

namespace {

class RescalingLayer final : public Layer {
 public:
  RescalingLayer(const ArrayOption& scale, const RescalingOptions& options);
  std::string class_name() const override { return "Rescaling"; }
  Json config() const override { return layer_config(*this, {{"scale", scale_.json()}}, options_); }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  ArrayOption scale_;
  RescalingOptions options_;
};

const RegisteredLayer registered_rescaling("Rescaling", [](JsonObject& config) {
  const auto options = layer_options_from<RescalingOptions>(config);
  return Rescaling(config.take<ArrayOption>("scale"), options);
});

bool rescaling_fits(const Shape& numbers, const Shape& input) {
  if (numbers.size() > input.size()) return false;
  const size_t first = input.size() - numbers.size();
  for (size_t a = 0; a < numbers.size(); ++a) {
    const int64_t extent = input[first + a];
    if (numbers[a] != 1 && extent != -1 && numbers[a] != extent) return false;
  }
  return true;
}

DTensor constant(const ArrayOption& numbers, const DTensor& like) {
  const auto rank = static_cast<int64_t>(numbers.shape().size());
  return pack(numbers.tensor().to(like.dtype()), Layout::replicated(like.mesh(), rank));
}

RescalingLayer::RescalingLayer(const ArrayOption& scale, const RescalingOptions& options)
    : Layer(common_options(options)), scale_(scale), options_(options) {
  if (scale.defined() && options.offset.defined()) return;
  throw ConfigError("Rescaling " + options.name, "scale and offset are numbers", "none",
                    "give 1 and 0 to leave x as it is");
}

Shape RescalingLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  for (const ArrayOption* numbers : {&scale_, &options_.offset}) {
    if (rescaling_fits(numbers->shape(), input)) continue;
    throw ShapeError("Rescaling " + path(),
                     str(numbers == &scale_ ? "scale " : "offset ", to_string(numbers->shape()),
                         " broadcasts to the input"),
                     to_string(input), "give one number, or one for each of the last axis");
  }
  return input;
}

DTensor RescalingLayer::call(const Inputs& inputs, const CallContext&) {
  const at::ScalarType dtype = dtype_policy().compute;
  DTensor x = inputs[0].dtype() == dtype ? inputs[0] : ops::cast(inputs[0], dtype);
  x = scale_.shape().empty() ? x * scale_.tensor().item<double>() : x * constant(scale_, x);
  const ArrayOption& offset = options_.offset;
  return offset.shape().empty() ? x + offset.tensor().item<double>() : x + constant(offset, x);
}

}  // namespace

Rescaling::Rescaling(const ArrayOption& scale, const RescalingOptions& options)
    : LayerHandle(std::make_shared<RescalingLayer>(scale, options)) {}

}  // namespace tessera
