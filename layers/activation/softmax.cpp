#include <tessera/layers/activation/activation.hpp>

#include <mutex>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SoftmaxOptions& o, const Visit& visit) {
  AxesOption axis{o.axis};
  visit("axis", axis);
}

namespace {

class SoftmaxLayer final : public LayerOf<SoftmaxLayer, SoftmaxOptions> {
 public:
  static constexpr const char* keras_name = "Softmax";
  explicit SoftmaxLayer(const SoftmaxOptions& options);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  void check_mask(const Shape& mask, const Shape& input) const;

  std::once_flag warned_;
};

const RegisteredLayerOf<SoftmaxLayer> registered_softmax;

DTensor softmax(const DTensor& x, const std::vector<int64_t>& axes) {
  if (axes.size() == 1) return ops::softmax(x, axes[0]);
  const DTensor wide = widened(x);
  return ops::cast(ops::exp(wide - ops::logsumexp(wide, axes, true)), x.dtype());
}

SoftmaxLayer::SoftmaxLayer(const SoftmaxOptions& options) : LayerOf(options) {
  if (!options.axis.empty()) return;
  throw ConfigError(where(), "axis holds at least one axis", "none", "give -1 for the last");
}

void SoftmaxLayer::check_mask(const Shape& mask, const Shape& input) const {
  bool fits = mask.size() <= input.size();
  for (size_t back = 1; fits && back <= mask.size(); ++back) {
    const int64_t m = mask[mask.size() - back], x = input[input.size() - back];
    fits = m == 1 || m == x || m == -1 || x == -1;
  }
  if (fits) return;
  throw ShapeError(where(), "the mask broadcasts to the input " + to_string(input), to_string(mask),
                   "give each of its last axes 1 or the input's extent");
}

Shape SoftmaxLayer::output_shape(const Shapes& inputs) const {
  if (inputs.size() != 2) single_input(inputs);
  const Shape& input = inputs[0];
  for (const int64_t axis : arguments_.axis) {
    normalize_axis(axis, static_cast<int64_t>(input.size()), where());
  }
  if (inputs.size() == 2) check_mask(inputs[1], input);
  return input;
}

DTensor SoftmaxLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  warn_of_one_element(warned_, where(), x, arguments_.axis);
  DTensor mask = inputs.size() == 2 ? inputs[1] : x.mask();
  if (!mask.defined()) return softmax(x, arguments_.axis);
  check_mask(mask.shape(), x.shape());
  const auto constant = [&](double value, at::ScalarType dtype) {
    return scalar(value, x.mesh(), dtype);
  };
  if (at::isFloatingType(mask.dtype())) {
    mask = ops::greater(mask, constant(0.5, mask.dtype()));
  } else if (mask.dtype() != at::kBool) {
    mask = ops::greater(mask, constant(0, mask.dtype()));
  }
  // float16 ends at -65504.
  const DTensor out = constant(x.dtype() == at::kHalf ? -3e4 : -1e9, x.dtype());
  const DTensor y = softmax(ops::where(mask, x, out), arguments_.axis);
  return ops::where(mask, y, constant(0, y.dtype()));
}

}  // namespace

Softmax::Softmax(const SoftmaxOptions& options) : LayerHandle(make_layer<SoftmaxLayer>(options)) {}

}  // namespace tessera
