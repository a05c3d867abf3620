#include <tessera/layers/preprocessing/category_encoding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/preprocessing/internal/category_output.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(CategoryEncodingOptions& o, const Visit& visit) {
  visit("output_mode", o.output_mode);
  visit("sparse", o.sparse);
}

namespace {

class CategoryEncodingLayer final : public Layer {
 public:
  CategoryEncodingLayer(int64_t num_tokens, const CategoryEncodingOptions& options);
  std::string class_name() const override { return "CategoryEncoding"; }
  Json config() const override {
    Json json = layer_config(*this, {{"num_tokens", num_tokens_}}, options_);
    erase_if_false(json, {"sparse"});
    return json;
  }
  Shape output_shape(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return encoded(truncated_to_int64(inputs[0]), options_.output_mode, num_tokens_,
                   dtype_policy().compute, inputs.size() == 2 ? inputs[1] : DTensor());
  }

 private:
  std::string where() const { return "CategoryEncoding " + path(); }

  int64_t num_tokens_;
  CategoryEncodingOptions options_;
};

const RegisteredLayer registered_category_encoding("CategoryEncoding", [](JsonObject& config) {
  const auto options = layer_options_from<CategoryEncodingOptions>(config);
  return CategoryEncoding(take_extent(config, "num_tokens"), options);
});

CategoryEncodingLayer::CategoryEncodingLayer(int64_t num_tokens,
                                             const CategoryEncodingOptions& options)
    : Layer(common_options(options)), num_tokens_(num_tokens), options_(options) {
  check_output_mode(where(), options.output_mode, {"one_hot", "multi_hot", "count"},
                    options.sparse);
  if (num_tokens >= 1) return;
  throw ConfigError(where(), "num_tokens is at least 1", str(num_tokens),
                    "give the number of categories");
}

Shape CategoryEncodingLayer::output_shape(const Shapes& inputs) const {
  const bool weighted = inputs.size() == 2;
  if (weighted && options_.output_mode != "count") {
    throw ShapeError(where(), "weights are for output_mode \"count\"",
                     in_quotes(options_.output_mode), "call it on the numbers alone");
  }
  const Shape& numbers = weighted ? inputs[0] : single_input(inputs);
  if (weighted && inputs[0] != inputs[1]) {
    throw ShapeError(where(), "numbers and weights have the same shape",
                     to_string(inputs[0]) + " and " + to_string(inputs[1]),
                     "give a weight for each number");
  }
  return encoded_shape(where(), numbers, options_.output_mode, num_tokens_);
}

}  // namespace

CategoryEncoding::CategoryEncoding(int64_t num_tokens, const CategoryEncodingOptions& options)
    : LayerHandle(std::make_shared<CategoryEncodingLayer>(num_tokens, options)) {}

}  // namespace tessera
