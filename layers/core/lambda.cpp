#include <tessera/layers/core/lambda.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/unsaved_layer.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct LambdaArguments : LambdaOptions {
  std::function<DTensor(const DTensor&)> function;
};

/// Visits nothing: a function is no part of a configuration.
template <class Visit>
void fields(LambdaArguments&, const Visit&) {}

class LambdaLayer final : public LayerOf<LambdaLayer, LambdaArguments>, public UnsavedLayer {
 public:
  static constexpr const char* keras_name = "Lambda";
  explicit LambdaLayer(const LambdaArguments& arguments) : LayerOf(arguments) {
    if (arguments.function) return;
    throw ConfigError("Lambda " + arguments.name, "the function must be callable",
                      "an empty function", "pass a lambda or a function");
  }
  Shape output_shape(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return arguments_.can_be_replayed; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    single_input(Shapes(inputs.size()));
    return arguments_.function(inputs[0]);
  }
};

Shape LambdaLayer::output_shape(const Shapes& inputs) const {
  const Shape& x = single_input(inputs);
  if (!arguments_.output_shape) return Layer::output_shape(inputs);
  Shape shape = *arguments_.output_shape;
  shape.insert(shape.begin(), x.empty() ? -1 : x[0]);
  return shape;
}

}  // namespace

Lambda::Lambda(std::function<DTensor(const DTensor&)> function, const LambdaOptions& options)
    : LayerHandle(make_layer<LambdaLayer>(LambdaArguments{options, std::move(function)})) {}

}  // namespace tessera
