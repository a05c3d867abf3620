#include <tessera/layers/merging/merge.hpp>

#include <algorithm>

#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/one_dtype.hpp>
#include <tessera/layers/internal/replayed_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

class MergeLayer final : public ReplayedLayer {
 public:
  /// Merges inputs of equal rank and dtype.
  using Function = DTensor (*)(const Inputs& inputs, at::ScalarType compute);
  /// `inputs`: number of inputs; 0: any number, at least 1.
  MergeLayer(std::string class_name, Function function, size_t inputs, const LayerOptions& options)
      : ReplayedLayer(options),
        class_name_(std::move(class_name)),
        function_(function),
        inputs_(inputs) {}
  std::string class_name() const override { return class_name_; }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  std::string class_name_;
  Function function_;
  size_t inputs_;
};

const RegisteredLayer registered_add("Add", plain_layer<Add>);
const RegisteredLayer registered_subtract("Subtract", plain_layer<Subtract>);
const RegisteredLayer registered_multiply("Multiply", plain_layer<Multiply>);
const RegisteredLayer registered_average("Average", plain_layer<Average>);
const RegisteredLayer registered_maximum("Maximum", plain_layer<Maximum>);
const RegisteredLayer registered_minimum("Minimum", plain_layer<Minimum>);

template <DTensor (*Binary)(const DTensor&, const DTensor&)>
DTensor fold(const Inputs& inputs, at::ScalarType) {
  DTensor y = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) y = Binary(y, inputs[i]);
  return y;
}

/// Reshapes a mask so that it broadcasts to a value's elements.
DTensor of_elements(const DTensor& mask, const DTensor& value) {
  Shape shape = mask.shape();
  shape.resize(std::max(value.shape().size(), shape.size()), 1);
  return ops::reshape(mask, shape);
}

/// Returns the extreme of the elements that are not masked.
template <DTensor (*Binary)(const DTensor&, const DTensor&)>
DTensor extreme(const Inputs& inputs, at::ScalarType) {
  DTensor y = inputs[0];
  DTensor mask = y.mask();
  for (size_t i = 1; i < inputs.size(); ++i) {
    DTensor x = inputs[i];
    const DTensor x_mask = x.mask();
    if (x_mask.defined()) x = ops::where(of_elements(x_mask, x), x, y);
    if (mask.defined()) y = ops::where(of_elements(mask, y), y, x);
    mask = mask.defined() && x_mask.defined() ? ops::logical_or(mask, x_mask) : DTensor();
    y = Binary(y, x);
  }
  return y;
}

/// Multiplies the inputs: masked elements count as 1; where all inputs are masked, the result is 0.
DTensor product(const Inputs& inputs, at::ScalarType) {
  const auto number = [&](double value) {
    return scalar(value, inputs[0].mesh(), inputs[0].dtype());
  };
  DTensor y, mask;
  bool masked = true;
  for (const DTensor& input : inputs) {
    const DTensor x_mask = input.mask();
    masked = masked && x_mask.defined();
    DTensor x = input;
    if (x_mask.defined()) x = ops::where(of_elements(x_mask, x), x, number(1));
    if (masked) mask = mask.defined() ? ops::logical_or(mask, x_mask) : x_mask;
    y = y.defined() ? y * x : x;
  }
  return masked ? ops::where(of_elements(mask, y), y, number(0)) : y;
}

DTensor average(const Inputs& inputs, at::ScalarType compute) {
  at::ScalarType dtype = compute;
  // Sums in float16 overflow.
  Inputs wide;
  for (const DTensor& x : inputs) {
    if (at::isFloatingType(x.dtype())) dtype = x.dtype();
    wide.push_back(widened(x));
  }
  const DTensor sum = ops::cast(fold<ops::add>(wide, compute), at::toOpMathType(dtype));
  return ops::cast(sum / static_cast<double>(inputs.size()), dtype);
}

LayerHandle merge(const char* class_name, MergeLayer::Function function,
                  const LayerOptions& options, size_t inputs = 0) {
  return make_layer<MergeLayer>(class_name, function, inputs, options);
}

std::string to_text(const Shapes& shapes) {
  std::string text;
  for (const Shape& shape : shapes) text += (text.empty() ? "" : ", ") + to_string(shape);
  return text.empty() ? "no inputs" : text;
}

Shape MergeLayer::output_shape(const Shapes& inputs) const {
  const auto fail = [&](const std::string& expected, const std::string& fix) {
    throw ShapeError(class_name_ + " " + path(), expected, to_text(inputs), fix);
  };
  if (inputs_ == 0 ? inputs.empty() : inputs.size() != inputs_) {
    fail(inputs_ == 0 ? "it takes at least one input" : str("it takes ", inputs_, " inputs"),
         "call it on a list of tensors");
  }
  size_t rank = 0;
  for (const Shape& input : inputs) {
    if (input.empty()) fail("every input has a batch axis", "expand those without");
    rank = std::max(rank, input.size());
  }
  Shape shape(rank, 1);
  shape[0] = -1;
  for (const Shape& input : inputs) {
    if (shape[0] == -1) shape[0] = input[0];
    if (input[0] != -1 && input[0] != shape[0]) {
      fail("all batches have one size", "pass the same number of rows in each");
    }
    for (size_t a = 1; a < input.size(); ++a) {
      int64_t& extent = shape[rank - input.size() + a];
      if (extent == 1 || input[a] == -1) {
        extent = input[a] == 1 ? extent : input[a];
      } else if (extent != -1 && input[a] != 1 && input[a] != extent) {
        fail("the axes after the batch broadcast", "make extents equal, or 1");
      }
    }
  }
  return shape;
}

DTensor MergeLayer::call(const Inputs& inputs, const CallContext&) {
  int64_t rank = 0;
  for (const DTensor& input : inputs) rank = std::max(rank, input.rank());
  const at::ScalarType compute = dtype_policy().compute;
  Inputs aligned = with_one_dtype(inputs, compute);
  for (DTensor& input : aligned) {
    if (input.rank() == rank) continue;
    Shape shape = input.shape();
    shape.insert(shape.begin() + 1, static_cast<size_t>(rank - input.rank()), 1);
    input = ops::reshape(input, shape);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DTensor mask = inputs[i].mask();
    if (mask.defined() && inputs[i].rank() == rank) aligned[i] = aligned[i].with_mask(mask);
  }
  return function_(aligned, compute);
}

std::vector<DTensor> MergeLayer::masks(const Inputs& inputs, size_t) {
  DTensor any;
  for (const DTensor& input : inputs) {
    const DTensor mask = input.mask();
    if (!mask.defined()) return {};
    any = any.defined() ? ops::logical_or(any, mask) : mask;
  }
  return {any};
}

}  // namespace

Add::Add(const LayerOptions& options) : LayerHandle(merge("Add", fold<ops::add>, options)) {}
Subtract::Subtract(const LayerOptions& options)
    : LayerHandle(merge("Subtract", fold<ops::sub>, options, 2)) {}
Multiply::Multiply(const LayerOptions& options)
    : LayerHandle(merge("Multiply", product, options)) {}
Average::Average(const LayerOptions& options) : LayerHandle(merge("Average", average, options)) {}
Maximum::Maximum(const LayerOptions& options)
    : LayerHandle(merge("Maximum", extreme<ops::maximum>, options)) {}
Minimum::Minimum(const LayerOptions& options)
    : LayerHandle(merge("Minimum", extreme<ops::minimum>, options)) {}

}  // namespace tessera
