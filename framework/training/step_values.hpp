#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// The result of a training or test step: its loss, or several named numbers, which appear in logs,
/// history and monitors under their names (the dict of keras.Model.train_step):
///
///     const StepValues values = {{"d_loss", d_loss}, {"g_loss", g_loss}};
///
/// A value is one number and may be a partial sum. Logs show its mean over the rows of an epoch;
/// Keras shows the last batch's value.
class StepValues {
 public:
  /// The values {{"loss", loss}}.
  StepValues(const DTensor& loss);  // NOLINT: reads as data
  /// Throws ConfigError for no values, and for two with one name.
  StepValues(std::initializer_list<std::pair<std::string, DTensor>> values);
  explicit StepValues(std::vector<std::pair<std::string, DTensor>> values);

  const std::vector<std::pair<std::string, DTensor>>& all() const { return values_; }
  /// Whether a value is called "loss".
  bool has_loss() const { return loss_ >= 0; }
  /// Returns the value "loss"; without one, the first value, which then stands for it in checks
  /// that the loss is finite and in History::steps.
  const DTensor& loss() const {
    return values_[static_cast<size_t>(has_loss() ? loss_ : 0)].second;
  }

 private:
  std::vector<std::pair<std::string, DTensor>> values_;
  int64_t loss_ = -1;  ///< index of the value "loss"; -1: none
};

}  // namespace tessera
