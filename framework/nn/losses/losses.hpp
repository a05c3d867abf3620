#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/losses/circle_loss.hpp>
#include <tessera/framework/nn/losses/cross_entropy_losses.hpp>
#include <tessera/framework/nn/losses/ctc_loss.hpp>
#include <tessera/framework/nn/losses/focal_losses.hpp>
#include <tessera/framework/nn/losses/hinge_losses.hpp>
#include <tessera/framework/nn/losses/loss.hpp>
#include <tessera/framework/nn/losses/overlap_losses.hpp>
#include <tessera/framework/nn/losses/regression_losses.hpp>

namespace tessera {

namespace detail {

/// Creates the loss with this Keras name, "sparse_categorical_crossentropy", "mse", or class name,
/// with defaults. Throws ConfigError naming the nearest one.
LossHandle make_loss(const std::string& name);
/// Creates the loss with this name and the options of config(), by Keras' keys. Throws ConfigError;
/// for an unknown key, naming the nearest.
LossHandle make_loss(const std::string& name, const JsonObject& options);

}  // namespace detail

/// Creates a loss from {"class_name": "Huber", "config": {"delta": 2}}, as serialized() returns, or
/// from a name (keras.losses.deserialize). Throws ConfigError naming the JSON path, which begins
/// with `where`.
LossHandle loss_from_config(const Json& json, const std::string& where = "loss");
namespace detail {

/// Returns all names that make_loss() knows, sorted.
std::vector<std::string> loss_names();

/// The table of losses by name, to which each class adds itself with a Registered.
ConfigFactories<LossHandle>& loss_factories();

}  // namespace detail

}  // namespace tessera
