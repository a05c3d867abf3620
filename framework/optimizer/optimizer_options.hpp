#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// Options that every optimizer has. An optimizer's own options struct has the same members, with
/// the same defaults unless documented otherwise; lazy_rows only if its update of an element
/// depends on no other element.
struct BaseOptions {
  /// Decoupled weight decay, w -= w · rate · weight_decay before each update; none: no decay.
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;         ///< max norm of each gradient; none: off
  std::optional<double> clipvalue = std::nullopt;        ///< max |gradient element|; none: off
  std::optional<double> global_clipnorm = std::nullopt;  ///< max norm of all gradients; none: off
  /// Whether to keep moving averages of the weights, a = ema_momentum · a + (1 - ema_momentum) · w.
  bool use_ema = false;
  double ema_momentum = 0.99;  ///< decay of the moving averages, in [0, 1]
  /// Iterations after which averages overwrite the weights; none: finalize_variable_values() does.
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  /// Factor by which scale_loss() multiplies the loss and apply() divides the gradients; none: 1.
  std::optional<double> loss_scale_factor = std::nullopt;
  /// Calls of apply() whose gradients are averaged into one update, at least 2; none: each updates.
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";  ///< prefix of the slots' paths (default: the class name in snake_case)
  /// Whether a step changes only those rows of an embedding's table, its slots included, that it
  /// looked up (PyTorch's SparseAdam). The other rows keep their momentum and are not decayed.
  bool lazy_rows = false;
};

namespace detail {

/// The default bucket size in megabytes, that of DistributedDataParallel's bucket_cap_mb.
inline constexpr double default_bucket_cap_mb = 25;

/// Visits the options that every optimizer has, except the name, by Keras' keys in Keras' order.
template <class Options, class Visit>
void base_fields(Options& o, const Visit& visit) {
  visit("weight_decay", o.weight_decay);
  visit("clipnorm", o.clipnorm);
  visit("global_clipnorm", o.global_clipnorm);
  visit("clipvalue", o.clipvalue);
  visit("use_ema", o.use_ema);
  visit("ema_momentum", o.ema_momentum);
  visit("ema_overwrite_frequency", o.ema_overwrite_frequency);
  visit("loss_scale_factor", o.loss_scale_factor);
  visit("gradient_accumulation_steps", o.gradient_accumulation_steps);
  if constexpr (requires { o.lazy_rows; }) visit("lazy_rows", o.lazy_rows);
}

/// Copies the members that all optimizer options share.
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
  if constexpr (requires { from.lazy_rows, to.lazy_rows; }) to.lazy_rows = from.lazy_rows;
}

/// Returns the BaseOptions part of an optimizer's options.
template <class Options>
BaseOptions base_options(const Options& options) {
  BaseOptions base;
  copy_base_options(options, base);
  return base;
}

/// Throws ConfigError, naming class and option, for two kinds of clipping, a negative decay or
/// bound, a factor that is not positive, fewer than 2 accumulation steps or EMA options out of
/// range.
void check_base_options(const std::string& class_name, const BaseOptions& options);

}  // namespace detail

}  // namespace tessera
