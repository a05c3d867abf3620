#include <tessera/framework/strategy/sidecar_evaluator.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/io/checkpoint.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/strategy/internal/evaluation_log.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/step_exchange.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

constexpr const char* evaluator_name = "SidecarEvaluator";
/// Maximum sleep between checks for a signal.
constexpr std::chrono::milliseconds slice(50);

void require(bool holds, const char* option, const std::string& expected,
             const std::string& received) {
  if (!holds) throw ConfigError(str(evaluator_name, ", ", option), expected, received, "set it");
}

void throw_if_stopped() {
  const int signal = stop_signal();
  if (signal)
    throw Interrupted(signal, evaluator_name, signal_name(signal), "start it again to go on");
}

void sleep_for(std::chrono::milliseconds time) {
  for (; time.count() > 0; time -= slice) {
    throw_if_stopped();
    std::this_thread::sleep_for(std::min(time, slice));
  }
}

/// Returns when a checkpoint was written; the minimum time if it has been removed.
std::filesystem::file_time_type time_of(const CheckpointEntry& entry) {
  std::error_code gone;
  const auto time = std::filesystem::last_write_time(entry.folder, gone);
  return gone ? std::filesystem::file_time_type::min() : time;
}

/// Returns the checkpoints in descending order of time written, then of step.
std::vector<CheckpointEntry> newest_first(const std::string& folder) {
  std::vector<std::pair<std::filesystem::file_time_type, CheckpointEntry>> dated;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    dated.emplace_back(time_of(entry), entry);
  }
  std::sort(dated.begin(), dated.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.first, a.second.step) > std::make_pair(b.first, b.second.step);
  });
  std::vector<CheckpointEntry> entries;
  for (auto& [time, entry] : dated) entries.push_back(std::move(entry));
  return entries;
}

std::string in_words(const Logs& logs) {
  std::string text;
  for (const auto& [name, value] : logs) {
    text += str(text.empty() ? "" : ", ", name, " ", value);
  }
  return text;
}

/// One run of start().
class Watch {
 public:
  Watch(const ModelHandle& model, const SidecarEvaluatorOptions& options)
      : model_(model),
        options_(options),
        checkpoint_(model),
        log_(options.csv.empty() ? options.checkpoint_dir + "/evaluations.csv" : options.csv,
             options.log_dir.empty() ? "" : options.log_dir + "/validation") {
    if (!model.model().built()) model.model().build(batch_shapes(options.data));
  }

  int64_t run() {
    while (!options_.max_evaluations || count_ < *options_.max_evaluations) {
      throw_if_stopped();
      // Called before the check, which thus sees the last checkpoint.
      const bool over = options_.over && options_.over();
      if (evaluate_newest()) continue;
      if (over) break;
      sleep_for(options_.poll);
    }
    return count_;
  }

 private:
  /// Evaluates the newest readable checkpoint; returns whether there was a new one.
  bool evaluate_newest() {
    for (const CheckpointEntry& entry : newest_first(options_.checkpoint_dir)) {
      if (log_.has(entry.step)) return false;
      if (!load(entry)) continue;
      evaluate(entry);
      return true;
    }
    return false;
  }

  bool load(const CheckpointEntry& entry) {
    if (damaged_.count({entry.step, time_of(entry)})) return false;
    try {
      checkpoint_.restore(entry.folder, {.weights_only = true});
      return true;
    } catch (const CheckpointMismatch&) {
      throw;
    } catch (const FileError& error) {
      // Training may remove old checkpoints while they are read.
      if (!is_checkpoint(entry.folder)) return false;
      damaged_.insert({entry.step, time_of(entry)});
      std::cerr << "Warning: a checkpoint is not evaluated: " << error.what() << '\n';
      return false;
    }
  }

  void evaluate(const CheckpointEntry& entry) {
    const Logs logs = model_.evaluate(options_.data, {.batch_size = options_.batch_size,
                                                      .verbose = 0,
                                                      .steps = options_.steps,
                                                      .callbacks = options_.callbacks});
    log_.add(entry.step, std::filesystem::path(entry.folder).filename().string(), logs);
    ++count_;
    if (options_.verbose == 0) return;
    std::cout << "evaluation of step " << entry.step << ": " << in_words(logs) << std::endl;
  }

  const ModelHandle model_;
  const SidecarEvaluatorOptions& options_;
  Checkpoint checkpoint_;
  EvaluationLog log_;
  std::set<std::pair<int64_t, std::filesystem::file_time_type>> damaged_;
  int64_t count_ = 0;
};

}  // namespace

SidecarEvaluator::SidecarEvaluator(const ModelHandle& model, SidecarEvaluatorOptions options)
    : model_(model), options_(std::move(options)) {
  require(!options_.checkpoint_dir.empty(), "checkpoint_dir", "the folder that is watched", "none");
  require(static_cast<bool>(options_.data), "data", "the data that is evaluated on", "none");
  require(options_.batch_size > 0, "batch_size", "at least one row", str(options_.batch_size));
  require(options_.steps.value_or(1) > 0, "steps", "at least one batch",
          str(options_.steps.value_or(1)));
  require(options_.max_evaluations.value_or(1) > 0, "max_evaluations", "at least one",
          str(options_.max_evaluations.value_or(0)));
  require(options_.poll.count() > 0, "poll", "some time between looks at the folder",
          str(options_.poll.count(), " ms"));
}

int64_t SidecarEvaluator::start() {
  const StopSignals caught;
  return Watch(model_, options_).run();
}

}  // namespace tessera::strategy
