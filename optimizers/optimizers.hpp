#pragma once

#include <string>
#include <vector>

#include <tessera/optimizers/adadelta.hpp>
#include <tessera/optimizers/adafactor.hpp>
#include <tessera/optimizers/adagrad.hpp>
#include <tessera/optimizers/adam.hpp>
#include <tessera/optimizers/adamax.hpp>
#include <tessera/optimizers/adamw.hpp>
#include <tessera/optimizers/ftrl.hpp>
#include <tessera/optimizers/internal/block_values.hpp>
#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/moment_options.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>
#include <tessera/optimizers/lamb.hpp>
#include <tessera/optimizers/lion.hpp>
#include <tessera/optimizers/loss_scale_optimizer.hpp>
#include <tessera/optimizers/multi_optimizer.hpp>
#include <tessera/optimizers/muon.hpp>
#include <tessera/optimizers/nadam.hpp>
#include <tessera/optimizers/rmsprop.hpp>
#include <tessera/optimizers/schedule_free_adamw.hpp>
#include <tessera/optimizers/schedules/schedules.hpp>
#include <tessera/optimizers/sgd.hpp>

namespace tessera {

/// The optimizer that Keras serialized: {"class_name": "Adam", "config": {…}}. Throws ConfigError
/// naming `where` and the nearest class or key.
OptimizerHandle optimizer_from_config(const Json& json, const std::string& where = "optimizer");

/// An optimizer as Keras serializes it (keras.optimizers.serialize).
Json optimizer_to_config(const OptimizerHandle& optimizer);

/// Keras' class names of all optimizers that work without another one, sorted.
std::vector<std::string> optimizer_names();

}  // namespace tessera
