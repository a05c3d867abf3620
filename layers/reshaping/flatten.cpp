#include <tessera/layers/reshaping/reshape.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(FlattenOptions& o, const Visit& visit) {
  visit("data_format", o.data_format);
}

namespace {

class FlattenLayer final : public LayerOf<FlattenLayer, FlattenOptions> {
 public:
  static constexpr const char* keras_name = "Flatten";
  explicit FlattenLayer(const FlattenOptions& options);
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  bool channels_first_;
};

const RegisteredLayerOf<FlattenLayer> registered_flatten;

FlattenLayer::FlattenLayer(const FlattenOptions& options)
    : LayerOf(options), channels_first_(options.data_format == "channels_first") {
  if (channels_first_ || options.data_format == "channels_last") return;
  throw ConfigError(where(), "data_format is \"channels_last\" or \"channels_first\"",
                    in_quotes(options.data_format), "write one of the two");
}

Shape FlattenLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.empty()) {
    throw ShapeError(where(), "the input has a batch axis", to_string(input), "give it one");
  }
  const Shape rest(input.begin() + 1, input.end());
  const bool unknown = std::find(rest.begin(), rest.end(), -1) != rest.end();
  return {input[0], unknown ? -1 : numel(rest)};
}

DTensor FlattenLayer::call(const Inputs& inputs, const CallContext&) {
  DTensor x = inputs[0];
  if (channels_first_ && x.rank() > 2) {
    std::vector<int64_t> axes = {0};
    for (int64_t a = 2; a < x.rank(); ++a) axes.push_back(a);
    axes.push_back(1);
    x = ops::transpose(x, axes);
  }
  return ops::reshape(x, output_shape({x.shape()}));
}

}  // namespace

Flatten::Flatten(const FlattenOptions& options) : LayerHandle(make_layer<FlattenLayer>(options)) {}

}  // namespace tessera
