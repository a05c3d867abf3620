#pragma once

#include <optional>

#include <tessera/framework/ops/activation.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/softmax.hpp>

/// Keras' activation functions with their arguments (keras.activations), for use as in
/// `Dense(8, {.activation = [](const DTensor& x) { return activations::elu(x, 0.5); }})`. All but
/// glu preserve shape, dtype and layout. All throw ConfigError unless x is floating.
namespace tessera::activations {

using ops::hard_shrink;
using ops::hard_sigmoid;
using ops::hard_silu;
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
using ops::tanh;
using ops::tanh_shrink;
using ops::threshold;

/// max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1) (Barron, 2017). Throws ConfigError for alpha 0.
DTensor celu(const DTensor& x, double alpha = 1);
/// x for x > 0, else alpha (exp(x) - 1).
DTensor elu(const DTensor& x, double alpha = 1);
/// Returns exp(x).
DTensor exponential(const DTensor& x);
/// x Φ(x) (Hendrycks and Gimpel, 2016), or its approximation with tanh.
DTensor gelu(const DTensor& x, bool approximate = false);
/// The first half of an axis times the sigmoid of the second; halves the axis' extent. A sharded
/// axis is resharded by communication. Throws ShapeError for an odd extent.
DTensor glu(const DTensor& x, int64_t axis = -1);
/// Alias of hard_silu.
DTensor hard_swish(const DTensor& x);
/// min(max(x, -1), 1).
DTensor hard_tanh(const DTensor& x);
/// Returns x.
DTensor linear(const DTensor& x);
/// min(x, max_value) for x >= threshold, else negative_slope (x - threshold).
DTensor relu(const DTensor& x, double negative_slope = 0,
             std::optional<double> max_value = std::nullopt, double threshold = 0);
/// Alias of silu.
DTensor swish(const DTensor& x);

}  // namespace tessera::activations
