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

/// A monitored value of the logs and its direction of improvement
/// (keras.callbacks.MonitorCallback).
class Monitor {
 public:
  /// Throws ConfigError naming the callback for an unknown mode.
  Monitor(std::string callback, MonitorOptions options);

  const std::string& name() const { return options_.monitor; }
  /// Whether the value is better than the reference: any number is better than none, NaN never is.
  /// With mode "auto" a loss should fall, and a compiled metric follows its class. Throws
  /// ConfigError if "auto" does not know the direction.
  bool improved(double value, const std::optional<double>& reference, const Trainer& model);
  /// Returns the names that could be monitored, "a,b".
  static std::string names_in(const Logs& logs);

 private:
  bool rises(const Trainer& model) const;

  std::string callback_;
  MonitorOptions options_;
  std::optional<bool> rises_;
};

}  // namespace tessera::detail
