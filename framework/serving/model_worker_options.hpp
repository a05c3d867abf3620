#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera {

/// The options of how a server runs its model.
struct ModelWorkerOptions {
  int64_t max_batch = 256;  ///< maximum number of rows per call of the model
  /// Maximum number of elements of a tokenized batch of texts; status 413 for larger ones.
  int64_t max_elements = 1 << 20;
  /// Maximum activation memory of one call. A request that needs more gets status 413, and a
  /// version whose sample needs more is refused. Default: half of the memory available at the
  /// start, in equal shares for the models of a server.
  std::optional<int64_t> max_activation_bytes = std::nullopt;
  std::chrono::microseconds batch_window{0};  ///< how long a request waits for others to join it
  std::chrono::milliseconds poll{1000};       ///< interval of checks for a newer version
  int64_t max_waiting = 1024;  ///< maximum number of waiting requests; more get status 503
  LayoutMap layouts = {};      ///< default: undefined, the model on one device
  /// Whether a newer version is first tried in a separate process, tessera-check-export. Only that
  /// process fails if the version takes too much memory or time.
  bool isolate_trials = true;
  std::chrono::milliseconds trial_timeout{600000};  ///< timeout of that process
  /// Receives one line about each export that is refused (default: prints to standard error).
  std::function<void(const std::string&)> warn = {};
};

/// The model version in service.
struct ServedModel {
  int64_t version = 0;
  bool takes_text = false;
  std::vector<ExportedTensor> inputs = {};
  std::vector<ExportedTensor> outputs = {};
  std::vector<std::string> input_names = {};  ///< those of `inputs`
  size_t signature = 0;                       ///< a hash of them
  std::vector<std::string> labels = {};
};

/// How often a server has called a model.
struct WorkerRecords {
  int64_t answered = 0;  ///< requests that were answered with predictions
  int64_t calls = 0;     ///< calls of the model, each for one or several requests
  int64_t replayed = 0;  ///< calls that replayed a captured step, which was rewritten for speed
};

}  // namespace tessera
