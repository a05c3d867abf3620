#include <tessera/framework/io/checkpoint_manager.hpp>

#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>

#include <tessera/framework/base/checkpoint_folder.hpp>
#include <tessera/framework/base/checkpoint_reader.hpp>
#include <tessera/framework/base/file.hpp>
#include <tessera/framework/base/text.hpp>
#include <tessera/framework/io/agree.hpp>

namespace tessera {
namespace {

void check(const std::string& directory, const CheckpointManagerOptions& options) {
  const std::string& mode = options.mode;
  const std::string& monitor = options.monitor;
  const bool known = mode == "min" || mode == "max" || mode == "auto";
  if (directory.empty()) {
    throw ConfigError("CheckpointManager", "a directory", "an empty text", "name one");
  }
  if (options.max_to_keep.value_or(1) < 1) {
    throw ConfigError("CheckpointManager, max_to_keep", "at least 1", str(*options.max_to_keep),
                      "pass std::nullopt to keep all");
  }
  if (options.every_n_steps < 1) {
    throw ConfigError("CheckpointManager, every_n_steps", "at least 1",
                      str(options.every_n_steps), "pass 1 to save at every step");
  }
  const bool is_loss = monitor == "loss" || monitor.ends_with("_loss");
  if (known && (mode != "auto" || monitor.empty() || is_loss)) return;
  throw ConfigError("CheckpointManager, mode", "\"min\" or \"max\", or \"auto\" for a loss",
                    in_quotes(mode) + " for " + in_quotes(monitor), "pass \"min\" or \"max\"");
}

/// What a manager wrote beside a checkpoint; null if none did.
Json about(const std::string& folder) {
  const Json state = CheckpointReader(folder).state();
  const Json about = state.is_object() ? state.value("about", Json()) : Json();
  return about.is_object() && about.contains("metrics") ? about : Json();
}

/// What decides which checkpoints stay. The values are of those that a manager made, by step.
struct Retention {
  std::string directory;
  CheckpointManagerOptions options;
  std::map<int64_t, std::optional<double>> made;
  std::set<int64_t> damaged = {};

  std::optional<int64_t> best_step() const {
    std::optional<int64_t> best;
    for (const auto& [step, value] : made) {
      if (options.monitor.empty() || !value || std::isnan(*value)) continue;
      const double former = best ? *made.at(*best) : 0;
      const bool better = !best || (options.mode == "max" ? *value > former : *value < former);
      if (better && exists(directory + "/" + checkpoint_name(step))) best = step;
    }
    return best;
  }

  /// Removes those that need not stay, never the newest.
  void prune(int64_t newest) const {
    const std::optional<int64_t> best = best_step();
    const std::vector<CheckpointEntry> entries = list_checkpoints(directory);
    int64_t kept = 1;
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      if (entry->step == newest || !made.count(entry->step)) continue;
      const bool broken = damaged.count(entry->step) > 0;
      const bool stays = !options.max_to_keep || kept < *options.max_to_keep;
      if (!broken) ++kept;
      if (broken || (!stays && entry->step != best)) remove(entry->folder);
    }
  }

 private:
  /// The new checkpoint is whole whether or not an old one can go.
  static void remove(const std::string& folder) {
    try {
      remove_checkpoint(folder);
    } catch (const FileError& error) {
      std::cerr << "Warning: an old checkpoint stays: " << error.what() << '\n';
    }
  }
};

}  // namespace

CheckpointManager::CheckpointManager(const Checkpoint& checkpoint, const std::string& directory,
                                     const CheckpointManagerOptions& options)
    : checkpoint_(checkpoint), directory_(directory), options_(options) {
  check(directory, options);
  const Mesh mesh = checkpoint_.mesh();
  agree(mesh, directory, [&] {
    if (is_first_rank(mesh) && std::filesystem::is_directory(directory)) {
      remove_leftovers(directory);
    }
  });
  agree(mesh, directory, [&] { read_made(); });
}

void CheckpointManager::read_made() {
  for (const CheckpointEntry& entry : list_checkpoints(directory_)) {
    try {
      const Json found = about(entry.folder);
      if (found.is_null()) continue;
      const Json value = found["metrics"].is_object()
                             ? found["metrics"].value(options_.monitor, Json())
                             : Json();
      made_[entry.step] = value.is_number() ? Value(value.get<double>()) : std::nullopt;
    } catch (const FileError&) {
      // Who made it cannot be told; restoring will say what is wrong with it.
    }
  }
}

std::string CheckpointManager::save(int64_t step, const Logs& metrics) {
  if (step % options_.every_n_steps != 0) return "";
  const std::string folder = directory_ + "/" + checkpoint_name(step);
  Json values = Json::object();
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value)) values[name] = value;
  }
  try {
    wait();
    Retention retention{directory_, options_, made_, damaged_};
    retention.made[step] = find_value(metrics, options_.monitor);
    retention.damaged.erase(step);
    checkpoint_.save(folder, {.asynchronous = options_.asynchronous,
                              .about = {{"metrics", values}},
                              .then = [retention, step] { retention.prune(step); }});
    made_ = retention.made;
    damaged_ = retention.damaged;
    return folder;
  } catch (const FileError& error) {
    if (options_.save_failure == SaveFailure::raise) throw;
    report(error.what());
    return "";
  }
}

void CheckpointManager::wait() {
  try {
    checkpoint_.wait();
  } catch (const FileError& error) {
    if (options_.save_failure == SaveFailure::raise) throw;
    report(error.what());
  }
}

void CheckpointManager::report(const std::string& line) const {
  warn_once(checkpoint_.mesh(), "the checkpoint was not saved: " + line);
}

std::vector<std::string> CheckpointManager::checkpoints() const {
  std::vector<std::string> folders;
  for (const CheckpointEntry& entry : list_checkpoints(directory_)) {
    if (!damaged_.count(entry.step)) folders.push_back(entry.folder);
  }
  return folders;
}

std::optional<std::string> CheckpointManager::latest() const {
  const std::vector<std::string> folders = checkpoints();
  return folders.empty() ? std::nullopt : std::optional(folders.back());
}

std::optional<std::string> CheckpointManager::best() const {
  const std::optional<int64_t> step = Retention{directory_, options_, made_}.best_step();
  if (!step) return std::nullopt;
  return directory_ + "/" + checkpoint_name(*step);
}

std::optional<std::string> CheckpointManager::restore_latest(
    const CheckpointRestoreOptions& options) {
  wait();
  std::exception_ptr first;
  const std::vector<CheckpointEntry> entries = list_checkpoints(directory_);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      checkpoint_.restore(entry->folder, options);
      return entry->folder;
    } catch (const CheckpointMismatch&) {
      throw;
    } catch (const FileError& error) {
      if (options_.strict || entries.size() == 1) throw;
      if (!first) {
        warn_once(checkpoint_.mesh(), str("a checkpoint is damaged, the one before it is taken: ",
                                          error.what()));
        first = std::current_exception();
      }
      damaged_.insert(entry->step);
    }
  }
  if (first) std::rethrow_exception(first);
  return std::nullopt;
}

void CheckpointManager::remove_all() {
  wait();
  agree(checkpoint_.mesh(), directory_, [&] {
    if (!is_first_rank(checkpoint_.mesh())) return;
    for (const CheckpointEntry& entry : list_checkpoints(directory_)) {
      if (made_.count(entry.step)) remove_checkpoint(entry.folder);
    }
    std::error_code not_empty;
    std::filesystem::remove(directory_, not_empty);
  });
  made_.clear();
}

}  // namespace tessera
