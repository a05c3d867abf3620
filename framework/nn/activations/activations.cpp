#include <tessera/framework/nn/activations/activations.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <tessera/framework/autodiff/internal/remat_region.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/nn/activations/activation_functions.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/elementwise.hpp>
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

/// Returns hard_sigmoid of Keras 1 and 2, min(max(0.2 x + 0.5, 0), 1).
DTensor hard_sigmoid_2(const DTensor& x) { return ops::clip(x * 0.2 + 0.5, 0, 1); }

}  // namespace

DTensor ActivationHandle::operator()(const DTensor& x) const {
  if (layer_) return (*layer_)(x);
  if (!function_) return x;
  if (warned_) warn_of_one_element(*warned_, name_, x, {-1});
  if (OpListener* const listener = tracer(); listener && own_)
    listener->user_code("an activation function");
  std::optional<RematRegionScope> again;
  if (thread_state().remat_activations) again.emplace();
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
    if (name == "softmax" || name == "log_softmax" || name == "sparsemax") {
      warned_ = std::make_shared<std::once_flag>();
    }
    return;
  }
  if (name == keras_2_hard_sigmoid) {
    function_ = hard_sigmoid_2;
    return;
  }
  if (name == approximate_gelu) {
    function_ = [](const DTensor& x) { return activations::gelu(x, /*approximate=*/true); };
    return;
  }
  if (name == "threshold") {
    throw ConfigError("activation", "an activation given by name must have default arguments",
                      in_quotes(name), "give a function that calls activations::threshold");
  }
  throw ConfigError("activation", "the name must be that of a Keras activation", in_quotes(name),
                    suggestion(name, activation_names()));
}

void detail::warn_of_one_element(std::once_flag& warned, const std::string& name, const DTensor& x,
                                 const std::vector<int64_t>& axes) {
  const auto extent_is_1 = [&](int64_t axis) {
    return x.size(normalize_axis(axis, x.rank(), name)) == 1;
  };
  if (!std::all_of(axes.begin(), axes.end(), extent_is_1)) return;
  std::call_once(warned, [&] {
    warn_once(x.mesh(), str(name, " over an axis of extent 1 of ", to_string(x.shape()),
                            " gives the same number for every input: for a single output use "
                            "sigmoid"));
  });
}

std::vector<std::string> detail::activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : activation_table) names.push_back(name);
  return names;
}

}  // namespace tessera
