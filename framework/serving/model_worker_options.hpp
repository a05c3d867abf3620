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
  /// start.
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

}  // namespace tessera
