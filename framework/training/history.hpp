#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/training/logs.hpp>

namespace tessera {

/// Values of a fit by epoch and losses by step (Keras name: keras.callbacks.History).
struct History {
  /// Epochs that were run, counted from 0.
  std::vector<int64_t> epoch;
  /// Each value over the epochs, in order of first appearance: loss, accuracy, val_loss, …
  std::vector<std::pair<std::string, std::vector<double>>> history;
  /// The loss of every step, before its update.
  std::vector<double> steps;
  /// Name of the dataset; it says whether the data are synthetic.
  std::string data;

  /// Appends one epoch's values.
  void append(int64_t epoch_index, const Logs& logs);

  /// Returns a value over the epochs. Throws StateError listing the known values.
  const std::vector<double>& at(const std::string& name) const;

  /// `{"history": {"loss": […], …}, "steps": […], "epoch": […], "data": "mnist"}`.
  Json as_json() const;
  /// Reads a result of as_json(); null stands for a value that is not finite. Throws ConfigError
  /// naming the path in the JSON.
  static History from_json(const Json& json, const JsonPath& path);
  /// Returns as_json() as text, numbers to full precision. A value that is not finite becomes null,
  /// since JSON has no number for it.
  std::string to_json() const;

  /// Writes to_json() to a file atomically. Throws FileError; an existing file is then unchanged.
  void save(const std::string& path) const;
};

}  // namespace tessera
