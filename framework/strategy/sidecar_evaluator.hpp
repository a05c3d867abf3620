#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera::strategy {

/// The options of SidecarEvaluator.
struct SidecarEvaluatorOptions {
  std::string checkpoint_dir;  ///< folder of the checkpoints to watch; required
  DatasetHandle data = {};     ///< evaluation data; required
  int64_t batch_size = 32;     ///< rows of a global batch; ignored for streams
  /// Maximum number of batches per evaluation (default: all).
  std::optional<int64_t> steps = std::nullopt;
  /// Number of evaluations after which start() returns (default: until `over` returns true).
  std::optional<int64_t> max_evaluations = std::nullopt;
  std::vector<CallbackHandle> callbacks = {};  ///< callbacks of each evaluation
  /// Folder whose subfolder "validation" gets TensorBoard's event files (default: none).
  std::string log_dir = "";
  /// CSV file that gets one line per evaluation: step, checkpoint, loss, metrics (default:
  /// evaluations.csv in `checkpoint_dir`).
  std::string csv = "";
  /// Interval of checks of the folder while there is nothing new.
  std::chrono::milliseconds poll = std::chrono::seconds(1);
  int verbose = 1;  ///< 0: silent, otherwise one line per evaluation
  /// Returns whether training is over (default: never). Called before each check of the folder, so
  /// that the last checkpoint is still evaluated.
  std::function<bool()> over = {};
};

/// Evaluates the newest checkpoint of a running training, each once
/// (tf.keras.utils.SidecarEvaluator): the program of the task "evaluator". Takes a compiled model,
/// prints a line per evaluation and writes its metrics, under tags such as
/// "evaluation_loss_vs_iterations". The newest checkpoint is the one written last. Checkpoints
/// removed while they are read are skipped, damaged ones with a warning; one of another model is an
/// error. Steps already in the CSV file are not repeated.
class SidecarEvaluator {
 public:
  /// Throws ConfigError for options that are missing or out of range.
  SidecarEvaluator(const ModelHandle& model, SidecarEvaluatorOptions options);
  /// Runs until max_evaluations or `over`; returns the number of evaluations. Throws Interrupted on
  /// a signal, FileError if metrics cannot be written, and what evaluate() throws.
  int64_t start();

 private:
  ModelHandle model_;
  SidecarEvaluatorOptions options_;
};

}  // namespace tessera::strategy
