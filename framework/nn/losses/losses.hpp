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

/// The loss of a Keras name, "sparse_categorical_crossentropy", "mse", or class name, with its
/// defaults. Throws ConfigError naming the nearest one.
LossHandle make_loss(const std::string& name);
/// The loss of a name with these options by Keras' keys, as config() gives them. Throws
/// ConfigError, for an unknown key naming the nearest one.
LossHandle make_loss(const std::string& name, const JsonObject& options);

}  // namespace detail

/// {"class_name": "Huber", "config": {"delta": 2}}, as serialized() gives it, or a name alone, as a
/// loss (keras.losses.deserialize). Throws ConfigError naming the place, which begins with `where`.
LossHandle loss_from_config(const Json& json, const std::string& where = "loss");
namespace detail {

/// Every name that make_loss knows, sorted.
std::vector<std::string> loss_names();

/// The table of losses by name, to which each class adds itself by a Registered.
ConfigFactories<LossHandle>& loss_factories();

}  // namespace detail

}  // namespace tessera
