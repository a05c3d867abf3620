#include <tessera/layers/reshaping/reshape.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct PermuteArguments : LayerOptions {
  std::vector<int64_t> dims;
};

template <class Visit>
void fields(PermuteArguments& a, const Visit& visit) {
  RequiredOption dims{a.dims};
  visit("dims", dims);
}

class PermuteLayer final : public LayerOf<PermuteLayer, PermuteArguments> {
 public:
  static constexpr const char* keras_name = "Permute";
  explicit PermuteLayer(const PermuteArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

const RegisteredLayerOf<PermuteLayer> registered_permute;

PermuteLayer::PermuteLayer(const PermuteArguments& arguments) : LayerOf(arguments) {
  std::vector<int64_t> sorted = arguments_.dims;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == static_cast<int64_t>(i) + 1) continue;
    throw ConfigError(where(), "dims holds each of 1, 2, … once", to_string(arguments_.dims),
                      "count the axes after the batch from 1");
  }
}

Shape PermuteLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() != arguments_.dims.size() + 1) {
    throw ShapeError(
        where(),
        str("the input has ", arguments_.dims.size() + 1, " axes with the batch, as dims says"),
        to_string(input), "give one entry in dims for each axis after the batch");
  }
  Shape shape = {input[0]};
  for (const int64_t axis : arguments_.dims) shape.push_back(input[static_cast<size_t>(axis)]);
  return shape;
}

DTensor PermuteLayer::call(const Inputs& inputs, const CallContext&) {
  std::vector<int64_t> axes = {0};
  axes.insert(axes.end(), arguments_.dims.begin(), arguments_.dims.end());
  return ops::transpose(inputs[0], axes);
}

}  // namespace

Permute::Permute(const std::vector<int64_t>& dims, const LayerOptions& options)
    : LayerHandle(make_layer<PermuteLayer>(PermuteArguments{options, dims})) {}

}  // namespace tessera
