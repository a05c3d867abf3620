#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/base/json.hpp>

namespace tessera {

/// Options that every optimizer has. An optimizer's own options struct has the same members, with
/// the same defaults unless it says otherwise.
struct BaseOptions {
  /// Decoupled: before each update w -= w · rate · weight_decay.
  std::optional<double> weight_decay = std::nullopt;
  /// Largest norm of each variable's gradient.
  std::optional<double> clipnorm = std::nullopt;
  /// Largest magnitude of each gradient element.
  std::optional<double> clipvalue = std::nullopt;
  /// Largest norm of all gradients together.
  std::optional<double> global_clipnorm = std::nullopt;
  /// Keeps a running mean of every weight: a = ema_momentum · a + (1 - ema_momentum) · w.
  bool use_ema = false;
  double ema_momentum = 0.99;
  /// Iterations after which the weights become their means; without it finalize_variable_values()
  /// does that.
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  /// What scale_loss() multiplies the loss by and apply() divides the gradients by.
  std::optional<double> loss_scale_factor = std::nullopt;
  /// Calls of apply() whose gradients are averaged for one update.
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  /// First part of the slots' paths; the class name in snake_case if empty.
  std::string name = "";
};

/// Copies the members that all options structs share.
template <class From, class To>
void copy_base_options(const From& from, To& to) {
  to.weight_decay = from.weight_decay;
  to.clipnorm = from.clipnorm;
  to.clipvalue = from.clipvalue;
  to.global_clipnorm = from.global_clipnorm;
  to.use_ema = from.use_ema;
  to.ema_momentum = from.ema_momentum;
  to.ema_overwrite_frequency = from.ema_overwrite_frequency;
  to.loss_scale_factor = from.loss_scale_factor;
  to.gradient_accumulation_steps = from.gradient_accumulation_steps;
  to.name = from.name;
}

/// The shared part of an optimizer's options.
template <class Options>
BaseOptions base_options(const Options& options) {
  BaseOptions base;
  copy_base_options(options, base);
  return base;
}

/// Throws ConfigError naming the class and the option: two kinds of clipping, a negative decay or
/// bound, a factor that is not positive, fewer than 2 accumulation steps, EMA options out of range.
void check_base_options(const std::string& class_name, const BaseOptions& options);

/// Keras' keys, in its order, after "name" and "learning_rate".
void add_base_config(const BaseOptions& options, Json& config);

/// Reads those keys and "name" from an optimizer's config; absent ones keep their values.
void take_base_options(JsonObject& config, BaseOptions& options);

/// The same, into an optimizer's own options.
template <class Options>
void take_base_options(JsonObject& config, Options& options) {
  BaseOptions base = base_options(options);
  take_base_options(config, base);
  copy_base_options(base, options);
}

}  // namespace tessera
