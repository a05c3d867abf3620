#include <tessera/layers/reshaping/reshape.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RepeatVectorArguments : LayerOptions {
  int64_t n = 0;
};

template <class Visit>
void fields(RepeatVectorArguments& a, const Visit& visit) {
  ExtentOption n{a.n};
  visit("n", n);
}

class RepeatVectorLayer final : public LayerOf<RepeatVectorLayer, RepeatVectorArguments> {
 public:
  static constexpr const char* keras_name = "RepeatVector";
  explicit RepeatVectorLayer(const RepeatVectorArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

const RegisteredLayerOf<RepeatVectorLayer> registered_repeat_vector;

RepeatVectorLayer::RepeatVectorLayer(const RepeatVectorArguments& arguments) : LayerOf(arguments) {
  if (arguments.n >= 1) return;
  throw ConfigError(where(), "n is at least 1", str(arguments.n), "give the number of copies");
}

Shape RepeatVectorLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() != 2) {
    throw ShapeError(where(), "the input is (batch, features)", to_string(input),
                     "flatten it first");
  }
  return {input[0], arguments_.n, input[1]};
}

DTensor RepeatVectorLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::broadcast_to(ops::expand_dims(inputs[0], 1), output_shape({inputs[0].shape()}));
}

}  // namespace

RepeatVector::RepeatVector(int64_t n, const LayerOptions& options)
    : LayerHandle(make_layer<RepeatVectorLayer>(RepeatVectorArguments{options, n})) {}

}  // namespace tessera
