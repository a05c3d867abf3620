#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// When TensorBoard writes values of batches: "epoch" for never, "batch", or a number N for every
/// N-th.
class UpdateFreq {
 public:
  /// Throws ConfigError for another word.
  UpdateFreq(const char* word);  // NOLINT: reads as data
  /// Throws ConfigError unless positive.
  UpdateFreq(int batches);  // NOLINT
  /// `batch` counts from 1.
  bool due(int64_t batch) const { return batches_ > 0 && batch % batches_ == 0; }

 private:
  int64_t batches_;
};

/// The options of TensorBoard.
struct TensorBoardOptions {
  std::string log_dir = "logs";  ///< folder of the event files
  /// Epochs from one histogram of every weight to the next; 0: none.
  int64_t histogram_freq = 0;
  /// Whether steps per second are written too, by epoch and, with `update_freq`, by batch.
  bool write_steps_per_second = false;
  /// When values are written by batch: never with "epoch", after each with "batch", or after every
  /// so many.
  UpdateFreq update_freq = "epoch";
};

/// Writes event files for TensorBoard in `log_dir`/train and /validation: `epoch_<value>` by epoch,
/// `batch_<value>` by batch, `evaluation_<value>_vs_iterations` by optimizer step, the learning
/// rate, histograms `<weight>/histogram` (keras.callbacks.TensorBoard).
class TensorBoard : public CallbackHandle {
 public:
  /// Throws ConfigError for a negative frequency. Training throws FileError where no event file can
  /// be made; where it cannot be written, as on a full disk, it warns once and goes on, and what
  /// was to be written follows later. Histograms leave out what is not finite, with a warning.
  explicit TensorBoard(const TensorBoardOptions& options = {});
};

}  // namespace tessera
