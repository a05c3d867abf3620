#include <tessera/framework/nn/activations/activations.hpp>

#include <array>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr std::array<std::pair<const char*, DTensor (*)(const DTensor&)>, 31> activation_table = {{
    {"celu", [](const DTensor& x) { return activations::celu(x); }},
    {"elu", [](const DTensor& x) { return activations::elu(x); }},
    {"exponential", activations::exponential},
    {"gelu", [](const DTensor& x) { return activations::gelu(x); }},
    {"glu", [](const DTensor& x) { return activations::glu(x); }},
    {"hard_shrink", [](const DTensor& x) { return activations::hard_shrink(x); }},
    {"hard_sigmoid", activations::hard_sigmoid},
    {"hard_silu", activations::hard_silu},
    {"hard_swish", activations::hard_swish},
    {"hard_tanh", activations::hard_tanh},
    {"leaky_relu", [](const DTensor& x) { return activations::leaky_relu(x); }},
    {"linear", nullptr},
    {"log_sigmoid", activations::log_sigmoid},
    {"log_softmax", [](const DTensor& x) { return activations::log_softmax(x); }},
    {"mish", activations::mish},
    {"relu", ops::relu},
    {"relu6", activations::relu6},
    {"selu", activations::selu},
    {"sigmoid", activations::sigmoid},
    {"silu", activations::silu},
    {"soft_shrink", [](const DTensor& x) { return activations::soft_shrink(x); }},
    {"softmax", [](const DTensor& x) { return activations::softmax(x); }},
    {"softplus", activations::softplus},
    {"softsign", activations::softsign},
    {"sparse_plus", activations::sparse_plus},
    {"sparse_sigmoid", activations::sparse_sigmoid},
    {"sparsemax", [](const DTensor& x) { return activations::sparsemax(x); }},
    {"squareplus", [](const DTensor& x) { return activations::squareplus(x); }},
    {"swish", activations::swish},
    {"tanh", activations::tanh},
    {"tanh_shrink", activations::tanh_shrink},
}};

}  // namespace

DTensor ActivationHandle::operator()(const DTensor& x) const {
  if (layer_) return (*layer_)(x);
  if (!function_) return x;
  if (OpListener* const listener = tracer(); listener && own_)
    listener->user_code("an activation function");
  return function_(x);
}

Shape ActivationHandle::output_shape(const Shape& input) const {
  if (layer_) return layer_->output_shape({input});
  if (name_ != "glu" || input.empty() || input.back() < 0) return input;
  Shape shape = input;
  shape.back() /= 2;
  return shape;
}

ActivationHandle::ActivationHandle(const std::string& name) : name_(name) {
  for (const auto& [known, function] : activation_table) {
    if (name != known) continue;
    function_ = function;
    return;
  }
  if (name == "threshold") {
    throw ConfigError("activation", "an activation given by name must have default arguments",
                      in_quotes(name), "give a function that calls activations::threshold");
  }
  throw ConfigError("activation", "the name must be that of a Keras activation", in_quotes(name),
                    suggestion(name, activation_names()));
}

std::vector<std::string> detail::activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : activation_table) names.push_back(name);
  return names;
}

}  // namespace tessera
