#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/training/logs.hpp>

namespace tessera {

/// What a call of fit went through (Keras name: keras.callbacks.History).
struct History {
  /// Epochs that were run, counted from 0.
  std::vector<int64_t> epoch;
  /// Each value's course over the epochs, in order of first appearance: loss, accuracy, val_loss, …
  std::vector<std::pair<std::string, std::vector<double>>> history;
  /// The loss of every step, before its update.
  std::vector<double> steps;
  /// Name of the data set; names synthetic data as such.
  std::string data;

  /// Adds one epoch's values.
  void append(int64_t epoch_index, const Logs& logs);

  /// A value's course. Throws StateError naming the values there are.
  const std::vector<double>& at(const std::string& name) const;

  /// `{"history": {"loss": […], …}, "steps": […], "epoch": […], "data": "mnist"}`.
  Json as_json() const;
  /// What as_json() gave, also with null for a value that is not finite. Throws ConfigError naming
  /// the place.
  static History from_json(const Json& json, const detail::JsonPath& path);
  /// The text of as_json(), numbers to full precision; a value that is not finite, for which JSON
  /// has no number, is null.
  std::string to_json() const;

  /// Writes to_json() to a file in one step. Throws FileError, leaving a former file as it was.
  void save(const std::string& path) const;
};

}  // namespace tessera
