#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// Named values of a step or an epoch, in the order in which they are shown: training values
/// alphabetically, then `val_*`, as Keras gives them.
using Logs = std::vector<std::pair<std::string, double>>;

/// Returns the value of a name, if there is one.
inline std::optional<double> find_value(const Logs& logs, std::string_view name) {
  for (const auto& [known, value] : logs) {
    if (known == name) return value;
  }
  return std::nullopt;
}

/// Replaces the value of a name, or appends it.
inline void set_value(Logs& logs, const std::string& name, double value) {
  for (auto& [known, present] : logs) {
    if (known == name) {
      present = value;
      return;
    }
  }
  logs.emplace_back(name, value);
}

}  // namespace tessera
