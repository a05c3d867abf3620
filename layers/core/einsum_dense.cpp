#include <tessera/layers/core/einsum_dense.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <regex>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/fans.hpp>
#include <tessera/layers/internal/int8_kernel.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

/// The output's shape without the batch, in which None is -1; Keras also reads a number. Visited in
/// place of the shape.
struct UnbatchedShapeOption {
  Shape& shape;
};

Json option_json(const UnbatchedShapeOption& option) {
  Json json = Json::array();
  for (const int64_t extent : option.shape) {
    json.push_back(extent == -1 ? Json(nullptr) : Json(extent));
  }
  return json;
}

void read_option(JsonObject& config, const std::string& key, UnbatchedShapeOption& option) {
  const Json json = config.take<Json>(key);
  const JsonPath path = config.path().key(key);
  if (json.is_number()) {
    option.shape = {json_as<int64_t>(json, path)};
    return;
  }
  option.shape.clear();
  for (const auto& extent : json_as<std::vector<std::optional<int64_t>>>(json, path)) {
    option.shape.push_back(extent.value_or(-1));
  }
}

namespace {

struct EinsumDenseArguments : EinsumDenseOptions {
  std::string equation;
  Shape output_shape;
};

template <class Visit>
void fields(EinsumDenseArguments& a, const Visit& visit) {
  UnbatchedShapeOption output_shape{a.output_shape};
  RequiredOption equation{a.equation};
  visit("output_shape", output_shape);
  visit("equation", equation);
  visit("activation", a.activation);
  // Keras writes None for no bias.
  std::optional<std::string> bias_axes;
  if (!a.bias_axes.empty()) bias_axes = a.bias_axes;
  visit("bias_axes", bias_axes);
  a.bias_axes = bias_axes.value_or("");
  kernel_fields(a, visit);
  QuantizationConfigOption quantization;
  visit("quantization_config", quantization);
}

/// Bounds the product of extents, so that multiplying by one more cannot overflow.
constexpr int64_t max_units = std::numeric_limits<int32_t>::max();

/// Draws the kernel as a matrix (summed axes, new axes), so that another initializer scales by its
/// fans.
class MatrixInitializer final : public Initializer {
 public:
  MatrixInitializer(InitializerHandle of_matrix, int64_t rows)
      : of_matrix_(std::move(of_matrix)), rows_(rows) {}
  std::string class_name() const override { return "Matrix"; }
  DTensor draw(const Shape& shape, at::ScalarType dtype, Seed seed) const override {
    const int64_t columns = rows_ == 0 ? 0 : numel(shape) / rows_;
    return ops::reshape(of_matrix_->draw({rows_, columns}, dtype, seed), shape);
  }

 private:
  InitializerHandle of_matrix_;
  int64_t rows_;
};

class EinsumDenseLayer final : public LayerOf<EinsumDenseLayer, EinsumDenseArguments, LoraLayer> {
 public:
  static constexpr const char* keras_name = "EinsumDense";
  explicit EinsumDenseLayer(const EinsumDenseArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;
  bool can_be_quantized() const override { return true; }
  Json config() const override { return with_adapter(LayerOf::config()); }
  int64_t input_axes() const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  void quantize_weights() override;
  KernelValues quantized_sum(const DTensor& delta) const override;
  RegularizerHandle kernel_regularizer() const override { return arguments_.kernel_regularizer; }
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  /// The equation for one input rank, with letters in place of the dots, and the shapes that
  /// follow.
  struct ResolvedEquation {
    std::string input, kernel, output;
    Shape kernel_shape, bias_shape, output_shape;
    std::string equation() const { return input + "," + kernel + "->" + output; }
  };
  ResolvedEquation resolve(const Shape& input) const;
  ResolvedEquation expand_dots(const Shape& input) const;
  Shape bias_shape(const ResolvedEquation& resolved, size_t extra) const;
  void make_kernel(const ResolvedEquation& resolved);
  Shape scale_shape(const ResolvedEquation& resolved) const;
  DTensor product(const ResolvedEquation& resolved, const DTensor& x);

  std::string input_, kernel_letters_, output_;  ///< terms without dots
  bool dots_left_ = false, dots_right_ = false;
  Variable bias_;
};

const RegisteredLayerOf<EinsumDenseLayer> registered_einsum_dense({"gptq_unpacked_column_size"});

EinsumDenseLayer::EinsumDenseLayer(const EinsumDenseArguments& arguments) : LayerOf(arguments) {
  static const std::regex pattern(
      R"((\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)(\.\.\.)?)");
  std::smatch match;
  const bool fits = std::regex_match(arguments.equation, match, pattern) &&
                    match[1].matched == match[5].matched && match[3].matched == match[7].matched &&
                    !(match[1].matched && match[3].matched);
  if (!fits) {
    throw ConfigError(
        where(), "equation has the form \"input,kernel->output\", with dots on at most one side",
        in_quotes(arguments.equation), "write for example \"abc,cd->abd\"");
  }
  int64_t product = 1;
  for (const int64_t extent : arguments.output_shape) {
    const bool known = extent != -1;
    if (!known || (extent > 0 && extent <= max_units / product)) {
      product *= known ? extent : 1;
      continue;
    }
    throw ConfigError(
        where(),
        str("output_shape holds -1 and extents from 1 on, with a product of at most ", max_units),
        to_string(arguments.output_shape), "give the extents after the batch");
  }
  input_ = match[2];
  kernel_letters_ = match[4];
  output_ = match[6];
  dots_left_ = match[1].matched;
  dots_right_ = match[3].matched;
  for (const char letter : arguments.bias_axes) {
    if (output_.find(letter) != std::string::npos) continue;
    throw ConfigError(where(), "bias_axes are letters of the output",
                      in_quotes(arguments.bias_axes), "take them from " + in_quotes(output_));
  }
  if (arguments.activation.layer()) track("activation", arguments.activation.layer());
  if (!arguments.kernel_layout.empty()) set_weight_layout("kernel", arguments.kernel_layout);
  if (!arguments.bias_layout.empty()) set_weight_layout("bias", arguments.bias_layout);
}

/// Replaces the dots by unused letters and fills in the output shape as far as it is known.
EinsumDenseLayer::ResolvedEquation EinsumDenseLayer::expand_dots(const Shape& input) const {
  const auto extra = static_cast<int64_t>(input.size()) - static_cast<int64_t>(input_.size());
  if (extra < 0 || (extra > 0 && !dots_left_ && !dots_right_)) {
    throw ShapeError(where(), "the input has an axis for each letter",
                     to_string(input) + " for " + in_quotes(arguments_.equation),
                     "correct the equation");
  }
  std::string dots;
  for (char c = 'A'; static_cast<int64_t>(dots.size()) < extra && c <= 'z'; ++c) {
    const bool letter = c <= 'Z' || c >= 'a';
    if (letter && arguments_.equation.find(c) == std::string::npos) dots += c;
  }
  ResolvedEquation resolved;
  resolved.kernel = kernel_letters_;
  resolved.input = dots_left_ ? dots + input_ : input_ + dots;
  resolved.output = dots_left_ ? dots + output_ : output_ + dots;
  resolved.output_shape = {input[0]};
  const auto elided = dots_left_ ? input.begin() : input.end() - extra;
  if (dots_left_ && extra > 0) {
    resolved.output_shape.assign(elided, elided + extra);
  }
  resolved.output_shape.insert(resolved.output_shape.end(), arguments_.output_shape.begin(),
                               arguments_.output_shape.end());
  if (dots_right_) resolved.output_shape.insert(resolved.output_shape.end(), elided, input.end());
  if (resolved.output_shape.size() == resolved.output.size()) return resolved;
  throw ShapeError(where(), "output_shape has every extent except the batch's",
                   to_string(arguments_.output_shape) + " for " + in_quotes(arguments_.equation),
                   "correct it");
}

Shape EinsumDenseLayer::bias_shape(const ResolvedEquation& resolved, size_t extra) const {
  const std::string& axes = arguments_.bias_axes;
  const size_t first = output_.find_first_of(axes);
  const size_t offset = dots_left_ ? extra : 0;
  Shape shape;
  for (size_t i = first; i < output_.size(); ++i) {
    const bool has = axes.find(output_[i]) != std::string::npos;
    shape.push_back(has ? resolved.output_shape[i + offset] : 1);
  }
  if (dots_right_) shape.insert(shape.end(), extra, 1);
  return shape;
}

EinsumDenseLayer::ResolvedEquation EinsumDenseLayer::resolve(const Shape& input) const {
  ResolvedEquation resolved = expand_dots(input);
  std::map<char, int64_t> extents;
  for (size_t a = 0; a < input.size(); ++a) extents[resolved.input[a]] = input[a];
  const auto fail = [&](const std::string& expected) {
    throw ShapeError(where(), expected,
                     to_string(input) + " and output_shape " + to_string(arguments_.output_shape) +
                         " for " + in_quotes(arguments_.equation),
                     "correct the equation or the output shape");
  };
  for (size_t a = 0; a < resolved.output.size(); ++a) {
    int64_t& extent = resolved.output_shape[a];
    const auto known = extents.find(resolved.output[a]);
    if (known != extents.end()) {
      if (extent == -1) extent = known->second;
      if (known->second == -1) known->second = extent;
      if (known->second != extent) fail(str("letter ", resolved.output[a], " has one extent"));
    } else {
      if (resolved.kernel.find(resolved.output[a]) == std::string::npos) {
        fail(str("letter ", resolved.output[a], " is one of the input or the kernel"));
      }
      extents[resolved.output[a]] = extent;
    }
  }
  for (const char letter : resolved.kernel) {
    if (!extents.count(letter) || extents.at(letter) < 0) {
      fail(str("letter ", letter, " of the kernel has a known extent"));
    }
    resolved.kernel_shape.push_back(extents.at(letter));
  }
  if (!arguments_.bias_axes.empty()) {
    resolved.bias_shape = bias_shape(resolved, input.size() - input_.size());
  }
  return resolved;
}

Shape EinsumDenseLayer::output_shape(const Shapes& inputs) const {
  const ResolvedEquation resolved = resolve(single_input(inputs));
  if (built() && resolved.kernel_shape != kernel_.shape()) {
    throw ShapeError(where(),
                     "the kernel has shape " + to_string(kernel_.shape()) + ", as when built",
                     to_string(resolved.kernel_shape), "pass inputs of that size");
  }
  return arguments_.activation.output_shape(resolved.output_shape);
}

void EinsumDenseLayer::make_weights(const Shapes& inputs) {
  const ResolvedEquation resolved = resolve(inputs[0]);
  make_kernel(resolved);
  if (!arguments_.bias_axes.empty()) {
    bias_ = add_weight(
        "bias", resolved.bias_shape, arguments_.bias_initializer,
        {.regularizer = arguments_.bias_regularizer, .constraint = arguments_.bias_constraint});
  }
  if (is_quantized()) {
    kernel_scale_ = add_weight("kernel_scale", scale_shape(resolved), "ones", {.trainable = false});
  }
  make_configured_adapter();
}

int64_t EinsumDenseLayer::input_axes() const {
  const auto is_output = [this](char letter) { return output_.find(letter) != std::string::npos; };
  const auto first = std::find_if(kernel_letters_.begin(), kernel_letters_.end(), is_output);
  const bool inputs_first =
      first != kernel_letters_.end() && std::all_of(first, kernel_letters_.end(), is_output);
  return inputs_first ? first - kernel_letters_.begin() : 0;
}

void EinsumDenseLayer::make_kernel(const ResolvedEquation& resolved) {
  if (is_quantized()) {
    kernel_ = add_weight("kernel", resolved.kernel_shape, "zeros",
                         {.trainable = false, .dtype = at::kChar});
    return;
  }
  InitializerHandle initializer = arguments_.kernel_initializer;
  int64_t summed = 1;
  for (size_t i = 0; i < resolved.kernel.size(); ++i) {
    if (resolved.output.find(resolved.kernel[i]) == std::string::npos)
      summed *= resolved.kernel_shape[i];
  }
  if (scales_by_fans(initializer)) {
    initializer = InitializerHandle(std::make_shared<MatrixInitializer>(initializer, summed));
  }
  kernel_ = add_weight(
      "kernel", resolved.kernel_shape, initializer,
      {.regularizer = arguments_.kernel_regularizer, .constraint = arguments_.kernel_constraint});
}

/// Returns the shape of kernel_scale: an axis for each one of the output, of extent 1 where the
/// kernel lacks its letter.
Shape EinsumDenseLayer::scale_shape(const ResolvedEquation& resolved) const {
  Shape shape;
  for (const char letter : resolved.output) {
    const size_t axis = resolved.kernel.find(letter);
    shape.push_back(axis == std::string::npos ? 1 : kernel_.shape()[axis]);
  }
  return shape;
}

void EinsumDenseLayer::quantize_weights() {
  const std::string equation = expand_dots(built_for()[0]).equation();
  const Int8Kernel kernel = int8_kernel(equation, kernel_.value());
  replace_weight(kernel_, kernel.values);
  kernel_scale_ = add_value("kernel_scale", kernel.scale);
}

EinsumDenseLayer::KernelValues EinsumDenseLayer::quantized_sum(const DTensor& delta) const {
  const std::string equation = expand_dots(built_for()[0]).equation();
  const Int8Kernel sum = int8_sum(equation, {kernel_.value(), kernel_scale_.value()}, delta);
  return {sum.values, sum.scale};
}

/// Returns the einsum of x and the kernel, in integers if that is int8, and with its adapter.
DTensor EinsumDenseLayer::product(const ResolvedEquation& resolved, const DTensor& x) {
  DTensor y;
  if (is_quantized()) {
    // The input may have more or fewer axes in place of the dots than when built.
    const DTensor scale = ops::reshape(read(kernel_scale_), scale_shape(resolved));
    y = int8_product(resolved.equation(), x, {read(kernel_), scale},
                     [this](const DTensor& sums) { return place_output(sums); });
  } else {
    y = ops::einsum(resolved.equation(), {x, read(kernel_)});
  }
  return has_adapter() ? y + adapter_product(resolved.equation(), x) : y;
}

DTensor EinsumDenseLayer::call(const Inputs& inputs, const CallContext&) {
  const ResolvedEquation resolved = expand_dots(inputs[0].shape());
  DTensor y = product(resolved, inputs[0]);
  if (bias_.defined()) y = place_output(y) + read(bias_);
  y = arguments_.activation(y);
  penalize(arguments_.activity_regularizer, y);
  return y;
}

}  // namespace

EinsumDense::EinsumDense(const std::string& equation, const Shape& output_shape,
                         const EinsumDenseOptions& options)
    : LayerHandle(
          make_layer<EinsumDenseLayer>(EinsumDenseArguments{options, equation, output_shape})) {}

}  // namespace tessera
