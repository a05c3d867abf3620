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
  std::string checkpoint_dir;  ///< folder of the checkpoints, which is watched; needed
  DatasetHandle data = {};     ///< what is evaluated on; needed
  int64_t batch_size = 32;     ///< rows of a global batch; a stream has batches of its own
  /// Batches of an evaluation at most; absent: all.
  std::optional<int64_t> steps = std::nullopt;
  /// Evaluations after which start() returns; absent: when `over` says so.
  std::optional<int64_t> max_evaluations = std::nullopt;
  std::vector<CallbackHandle> callbacks = {};  ///< told of each evaluation
  /// Folder of TensorBoard's event files, "validation" in it; empty: none.
  std::string log_dir = "";
  /// CSV file that gets a line for each evaluation: step, checkpoint, loss, metrics. Empty:
  /// evaluations.csv in `checkpoint_dir`.
  std::string csv = "";
  /// How long to wait before the folder is looked at again, if nothing new was there.
  std::chrono::milliseconds poll = std::chrono::seconds(1);
  int verbose = 1;  ///< 0 silent, else a line for each evaluation
  /// Whether no further checkpoint comes; asked between looks at the folder. The newest one is
  /// evaluated all the same. Empty: never.
  std::function<bool()> over = {};
};

/// Evaluates a compiled model on the checkpoints that a training writes, each newest one once,
/// while it goes on (tf.keras.utils.SidecarEvaluator): the program of the task "evaluator". Prints
/// a line for each and writes its metrics, under tags as "evaluation_loss_vs_iterations". Newest is
/// what was written last. Checkpoints that go while they are read are passed over, damaged ones
/// with a warning; one of another model is an error. Steps that the CSV file has are not repeated.
class SidecarEvaluator {
 public:
  /// Throws ConfigError for options that are missing or out of range.
  SidecarEvaluator(const ModelHandle& model, SidecarEvaluatorOptions options);
  /// Returns the number of evaluations. Throws Interrupted on a signal, what evaluate() throws, and
  /// FileError where metrics cannot be written.
  int64_t start();

 private:
  ModelHandle model_;
  SidecarEvaluatorOptions options_;
};

}  // namespace tessera::strategy
