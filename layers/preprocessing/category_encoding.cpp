#include <tessera/layers/preprocessing/category_encoding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/preprocessing/internal/category_output.hpp>

namespace tessera {

using namespace detail;

namespace {

struct CategoryEncodingArguments : CategoryEncodingOptions {
  int64_t num_tokens = 0;
};

template <class Visit>
void fields(CategoryEncodingArguments& a, const Visit& visit) {
  ExtentOption num_tokens{a.num_tokens};
  CallOption sparse{a.sparse};
  visit("num_tokens", num_tokens);
  visit("output_mode", a.output_mode);
  visit("sparse", sparse);
}

class CategoryEncodingLayer final
    : public LayerOf<CategoryEncodingLayer, CategoryEncodingArguments> {
 public:
  static constexpr const char* keras_name = "CategoryEncoding";
  explicit CategoryEncodingLayer(const CategoryEncodingArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return encoded(truncated_to_int64(inputs[0]), arguments_.output_mode, arguments_.num_tokens,
                   dtype_policy().compute, inputs.size() == 2 ? inputs[1] : DTensor());
  }
};

const RegisteredLayerOf<CategoryEncodingLayer> registered_category_encoding;

CategoryEncodingLayer::CategoryEncodingLayer(const CategoryEncodingArguments& arguments)
    : LayerOf(arguments) {
  check_output_mode(where(), arguments.output_mode, {"one_hot", "multi_hot", "count"},
                    arguments.sparse);
  if (arguments.num_tokens >= 1) return;
  throw ConfigError(where(), "num_tokens is at least 1", str(arguments.num_tokens),
                    "give the number of categories");
}

Shape CategoryEncodingLayer::output_shape(const Shapes& inputs) const {
  const bool weighted = inputs.size() == 2;
  if (weighted && arguments_.output_mode != "count") {
    throw ShapeError(where(), "weights are for output_mode \"count\"",
                     in_quotes(arguments_.output_mode), "call it on the numbers alone");
  }
  const Shape& numbers = weighted ? inputs[0] : single_input(inputs);
  if (weighted && inputs[0] != inputs[1]) {
    throw ShapeError(where(), "numbers and weights have the same shape",
                     to_string(inputs[0]) + " and " + to_string(inputs[1]),
                     "give a weight for each number");
  }
  return encoded_shape(where(), numbers, arguments_.output_mode, arguments_.num_tokens);
}

}  // namespace

CategoryEncoding::CategoryEncoding(int64_t num_tokens, const CategoryEncodingOptions& options)
    : LayerHandle(
          make_layer<CategoryEncodingLayer>(CategoryEncodingArguments{options, num_tokens})) {}

}  // namespace tessera
