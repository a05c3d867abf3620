#include <tessera/framework/nn/activations.hpp>

#include <array>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/text.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/tracer.hpp>

namespace tessera {
namespace {

DTensor softmax_last(const DTensor& x) { return ops::softmax(x, -1); }
DTensor log_softmax_last(const DTensor& x) { return ops::log_softmax(x, -1); }
DTensor silu(const DTensor& x) { return x * ops::sigmoid(x); }
DTensor relu6(const DTensor& x) { return ops::clip(x, 0, 6); }

constexpr std::array<std::pair<const char*, DTensor (*)(const DTensor&)>, 11> table = {{
    {"exponential", ops::exp},
    {"linear", nullptr},
    {"log_softmax", log_softmax_last},
    {"relu", ops::relu},
    {"relu6", relu6},
    {"sigmoid", ops::sigmoid},
    {"silu", silu},
    {"softmax", softmax_last},
    {"softplus", ops::softplus},
    {"swish", silu},
    {"tanh", ops::tanh},
}};

}  // namespace

DTensor ActivationRef::operator()(const DTensor& x) const {
  if (!function_) return x;
  if (Tracer* const hears = tracer(); hears && own_) hears->user_code("an activation function");
  return function_(x);
}

ActivationRef::ActivationRef(const std::string& name) : name_(name) {
  for (const auto& [known, function] : table) {
    if (name != known) continue;
    function_ = function;
    return;
  }
  throw ConfigError("activation", "an activation is known by its Keras name", in_quotes(name),
                    suggestion(name, activation_names()));
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : table) names.push_back(name);
  return names;
}

}  // namespace tessera
