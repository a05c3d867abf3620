#include <tessera/layers/preprocessing/rescaling.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RescalingArguments : RescalingOptions {
  ArrayOption scale;
};

template <class Visit>
void fields(RescalingArguments& a, const Visit& visit) {
  RequiredOption scale{a.scale};
  visit("scale", scale);
  visit("offset", a.offset);
}

class RescalingLayer final : public LayerOf<RescalingLayer, RescalingArguments> {
 public:
  static constexpr const char* keras_name = "Rescaling";
  explicit RescalingLayer(const RescalingArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

const RegisteredLayerOf<RescalingLayer> registered_rescaling;

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

RescalingLayer::RescalingLayer(const RescalingArguments& arguments) : LayerOf(arguments) {
  if (arguments.scale.defined() && arguments.offset.defined()) return;
  throw ConfigError(where(), "scale and offset are numbers", "none",
                    "give 1 and 0 to leave x as it is");
}

Shape RescalingLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  for (const ArrayOption* numbers : {&arguments_.scale, &arguments_.offset}) {
    if (rescaling_fits(numbers->shape(), input)) continue;
    throw ShapeError(where(),
                     str(numbers == &arguments_.scale ? "scale " : "offset ",
                         to_string(numbers->shape()), " broadcasts to the input"),
                     to_string(input), "give one number, or one for each of the last axis");
  }
  return input;
}

DTensor RescalingLayer::call(const Inputs& inputs, const CallContext&) {
  const at::ScalarType dtype = dtype_policy().compute;
  DTensor x = inputs[0].dtype() == dtype ? inputs[0] : ops::cast(inputs[0], dtype);
  const ArrayOption &scale = arguments_.scale, &offset = arguments_.offset;
  x = scale.shape().empty() ? x * scale.tensor().item<double>() : x * constant(scale, x);
  return offset.shape().empty() ? x + offset.tensor().item<double>() : x + constant(offset, x);
}

}  // namespace

Rescaling::Rescaling(const ArrayOption& scale, const RescalingOptions& options)
    : LayerHandle(make_layer<RescalingLayer>(RescalingArguments{options, scale})) {}

}  // namespace tessera
