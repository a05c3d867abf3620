#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// When TensorBoard writes values of batches: "epoch" (never), "batch" (each), or every N batches.
class UpdateFreq {
 public:
  /// Throws ConfigError unless "epoch" or "batch".
  UpdateFreq(const char* freq);  // NOLINT: reads as data
  /// Throws ConfigError unless positive.
  UpdateFreq(int batches);  // NOLINT
  /// Returns whether values of a batch are written. `batch` counts from 1.
  bool due(int64_t batch) const { return batches_ > 0 && batch % batches_ == 0; }

 private:
  int64_t batches_;
};

/// The options of TensorBoard.
struct TensorBoardOptions {
  std::string log_dir = "logs";  ///< folder of the event files
  /// Epochs between two histograms of all weights (0: none).
  int64_t histogram_freq = 0;
  /// Whether to write steps per second too, by epoch and, with `update_freq`, by batch.
  bool write_steps_per_second = false;
  /// When to write values by batch: "epoch" (never), "batch" (each), or every N batches.
  UpdateFreq update_freq = "epoch";
};

/// Writes event files for TensorBoard in `log_dir`/train and /validation: `epoch_<value>` by epoch,
/// `batch_<value>` by batch, `evaluation_<value>_vs_iterations` by optimizer step, the learning
/// rate, histograms `<weight>/histogram` (keras.callbacks.TensorBoard).
class TensorBoard : public CallbackHandle {
 public:
  /// Throws ConfigError for a negative frequency. Training throws FileError if an event file cannot
  /// be created. If one cannot be written, for example on a full disk, it warns once, continues,
  /// and writes the pending records later, or warns at the end how many are lost. Histograms leave
  /// out non-finite values, with a warning.
  explicit TensorBoard(const TensorBoardOptions& options = {});
};

}  // namespace tessera
