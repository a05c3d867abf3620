#include <tessera/framework/graph/input.hpp>

#include <array>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Dtypes of inputs besides those that layers compute in.
constexpr std::array<std::pair<const char*, at::ScalarType>, 4> countable = {
    {{"int32", at::kInt}, {"int64", at::kLong}, {"uint8", at::kByte}, {"bool", at::kBool}}};

std::optional<at::ScalarType> countable_dtype(const std::string& name) {
  for (const auto& [known, dtype] : countable) {
    if (name == known) return dtype;
  }
  return std::nullopt;
}

SymbolicTensor input_tensor(const Shape& shape, const InputOptions& options) {
  const auto layer = std::make_shared<InputLayer>(shape, options);
  return Layer::outputs(layer, {})[0];
}

}  // namespace

InputLayer::InputLayer(const Shape& shape, const InputOptions& options)
    : Layer({options.name, countable_dtype(options.dtype) ? "" : options.dtype, true}),
      countable_(countable_dtype(options.dtype)),
      batch_shape_{options.batch_size} {
  if (options.batch_size < -1 || options.batch_size == 0) {
    throw ShapeError("Input " + options.name, "batch_size must be at least 1, or -1 for any",
                     str(options.batch_size), "pass the number of rows of each batch");
  }
  for (int64_t extent : shape) {
    if (extent < -1 || extent == 0) {
      throw ShapeError("Input " + options.name, "an extent must be at least 1, or -1 for any",
                       to_string(shape), "pass the shape of one row, without the batch axis");
    }
  }
  batch_shape_.insert(batch_shape_.end(), shape.begin(), shape.end());
}

bool InputLayer::is_countable(const std::string& dtype) {
  return countable_dtype(dtype).has_value();
}

Json InputLayer::config() const {
  Json json = Json::object();
  json["batch_shape"] = Json::array();
  for (int64_t extent : batch_shape_) {
    json["batch_shape"].push_back(extent < 0 ? Json() : Json(extent));
  }
  json["dtype"] = to_string(dtype_policy());
  for (const auto& [name, dtype] : countable) {
    if (countable_ == dtype) json["dtype"] = name;
  }
  json["sparse"] = false;
  json["ragged"] = false;
  json["name"] = name();
  return json;
}

Shape InputLayer::output_shape(const Shapes& inputs) const {
  if (inputs.empty()) return batch_shape_;
  const Shape& input = single_input(inputs);
  bool fits = input.size() == batch_shape_.size();
  for (size_t a = 0; fits && a < input.size(); ++a) {
    fits = batch_shape_[a] < 0 || input[a] < 0 || input[a] == batch_shape_[a];
  }
  if (fits) return input;
  throw ShapeError("InputLayer " + path(), "the input must have shape " + to_string(batch_shape_),
                   to_string(input), "reshape the data or the model's Input");
}

DTensor InputLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::cast(inputs[0], symbolic_dtype({}));
}

Input::Input(const Shape& shape, const InputOptions& options)
    : SymbolicTensor(input_tensor(shape, options)) {}

}  // namespace tessera
