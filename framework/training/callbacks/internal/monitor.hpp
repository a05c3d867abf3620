#pragma once

#include <optional>
#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera::detail {

struct MonitorOptions {
  std::string monitor = "val_loss";
  std::string mode = "auto";  ///< "min", "max", "auto"
  /// A smaller change is no improvement; the sign does not matter.
  double min_delta = 0;
};

/// A value of the logs that is to become smaller or larger (keras.callbacks.MonitorCallback).
class Monitor {
 public:
  /// Throws ConfigError naming the callback for an unknown mode.
  Monitor(std::string callback, MonitorOptions options);

  const std::string& name() const { return options_.monitor; }
  /// Whether the value betters the reference; any number betters none, NaN nothing. With mode
  /// "auto" a loss is to fall, and a compiled metric does what its class does. Throws ConfigError
  /// for "auto" where neither is monitored.
  bool improved(double value, const std::optional<double>& reference, const Trainer& model);
  /// "a,b": the names that could be monitored.
  static std::string names_in(const Logs& logs);

 private:
  bool rises(const Trainer& model) const;

  std::string callback_;
  MonitorOptions options_;
  std::optional<bool> rises_;
};

}  // namespace tessera::detail
