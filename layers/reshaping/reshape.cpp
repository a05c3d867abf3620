#include <tessera/layers/reshaping/reshape.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct ReshapeArguments : LayerOptions {
  Shape target_shape;
};

template <class Visit>
void fields(ReshapeArguments& a, const Visit& visit) {
  RequiredOption target_shape{a.target_shape};
  visit("target_shape", target_shape);
}

class ReshapeLayer final : public LayerOf<ReshapeLayer, ReshapeArguments> {
 public:
  static constexpr const char* keras_name = "Reshape";
  explicit ReshapeLayer(const ReshapeArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  int64_t known_ = 1;  ///< product of the extents other than -1
  int64_t open_ = -1;  ///< axis whose extent is -1; -1 if none
};

const RegisteredLayerOf<ReshapeLayer> registered_reshape;

ReshapeLayer::ReshapeLayer(const ReshapeArguments& arguments) : LayerOf(arguments) {
  const Shape& shape = arguments.target_shape;
  bool valid = true;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] == -1 && open_ < 0) {
      open_ = static_cast<int64_t>(a);
    } else {
      valid = valid && shape[a] > 0 && !__builtin_mul_overflow(known_, shape[a], &known_);
    }
  }
  if (valid) return;
  throw ConfigError(where(), "target_shape holds extents from 1 on, and -1 at most once",
                    to_string(shape), "give the shape without the batch");
}

Shape ReshapeLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.empty()) {
    throw ShapeError(where(), "the input has a batch axis", to_string(input), "give it one");
  }
  Shape shape = {input[0]};
  const Shape& target = arguments_.target_shape;
  shape.insert(shape.end(), target.begin(), target.end());
  const Shape rest(input.begin() + 1, input.end());
  if (std::find(rest.begin(), rest.end(), -1) != rest.end()) return shape;
  const int64_t count = numel(rest);
  if (open_ < 0 ? count != known_ : count % known_ != 0) {
    throw ShapeError(where(),
                     str("the input's ", count, " elements a row fill ", to_string(target)),
                     to_string(input), "give a shape of as many elements, or -1 for one extent");
  }
  if (open_ >= 0) shape[static_cast<size_t>(open_) + 1] = count / known_;
  return shape;
}

DTensor ReshapeLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::reshape(inputs[0], output_shape({inputs[0].shape()}));
}

}  // namespace

Reshape::Reshape(const Shape& target_shape, const LayerOptions& options)
    : LayerHandle(make_layer<ReshapeLayer>(ReshapeArguments{options, target_shape})) {}

}  // namespace tessera
