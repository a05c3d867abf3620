#pragma once

#include <optional>

#include <tessera/framework/ops/activation.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/softmax.hpp>

/// Keras' activation functions with their arguments (keras.activations), for use as in
/// `Dense(8, {.activation = [](const DTensor& x) { return activations::elu(x, 0.5); }})`. All but
/// glu preserve shape, dtype and layout. All throw ConfigError unless x is floating.
namespace tessera::activations {

using ops::celu;
using ops::glu;
using ops::hard_shrink;
using ops::hard_sigmoid;
using ops::hard_silu;
using ops::hard_swish;
using ops::hard_tanh;
using ops::leaky_relu;
using ops::log_sigmoid;
using ops::log_softmax;
using ops::mish;
using ops::relu6;
using ops::selu;
using ops::sigmoid;
using ops::silu;
using ops::soft_shrink;
using ops::softmax;
using ops::softplus;
using ops::softsign;
using ops::sparse_plus;
using ops::sparse_sigmoid;
using ops::sparsemax;
using ops::squareplus;
using ops::swish;
using ops::tanh;
using ops::tanh_shrink;
using ops::threshold;

/// x for x > 0, else alpha (exp(x) - 1).
DTensor elu(const DTensor& x, double alpha = 1);
/// Returns exp(x).
DTensor exponential(const DTensor& x);
/// x Φ(x) (Hendrycks and Gimpel, 2016), or its approximation with tanh.
DTensor gelu(const DTensor& x, bool approximate = false);
/// Returns x.
DTensor linear(const DTensor& x);
/// min(x, max_value) for x >= threshold, else negative_slope (x - threshold).
DTensor relu(const DTensor& x, double negative_slope = 0,
             std::optional<double> max_value = std::nullopt, double threshold = 0);

}  // namespace tessera::activations
