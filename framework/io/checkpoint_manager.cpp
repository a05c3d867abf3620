#include <tessera/framework/io/checkpoint_manager.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/format/directory_claim.hpp>

namespace tessera {

using namespace detail;

namespace {

void check(const std::string& directory, const CheckpointManagerOptions& options) {
  const std::string& mode = options.mode;
  const std::string& monitor = options.monitor;
  const bool known = mode == "min" || mode == "max" || mode == "auto";
  if (directory.empty()) {
    throw ConfigError("CheckpointManager", "directory names a folder", "\"\"", "pass a directory");
  }
  if (options.max_to_keep.value_or(1) < 1) {
    throw ConfigError("CheckpointManager", "max_to_keep must be at least 1",
                      str(*options.max_to_keep), "pass std::nullopt to keep all");
  }
  if (options.every_n_steps < 1) {
    throw ConfigError("CheckpointManager", "every_n_steps must be at least 1",
                      str(options.every_n_steps), "pass 1 to save at every step");
  }
  const bool is_loss = monitor == "loss" || monitor.ends_with("_loss");
  if (known && (mode != "auto" || monitor.empty() || is_loss)) return;
  throw ConfigError("CheckpointManager", "mode is \"min\" or \"max\", or \"auto\" for a loss",
                    in_quotes(mode) + " for " + in_quotes(monitor), "pass \"min\" or \"max\"");
}

/// Returns the note that a manager stored in a checkpoint; null if it has none.
Json about(const std::string& folder) {
  const Json state = CheckpointReader(folder).state();
  const Json about = state.is_object() ? state.value("about", Json()) : Json();
  return about.is_object() && about.contains("metrics") ? about : Json();
}

/// Returns a checkpoint's number in the order of saving; -1 if it has none.
int64_t number_in(const Json& about) {
  constexpr int64_t limit = int64_t{1} << 62;
  const Json number = about.is_object() ? about.value("number", Json()) : Json();
  if (!number.is_number_integer()) return -1;
  const auto value = number.get<int64_t>();
  return value >= 0 && value < limit ? value : -1;
}

}  // namespace

/// The policy that decides which checkpoints are kept.
struct CheckpointManager::Retention {
  std::string directory;
  CheckpointManagerOptions options;
  std::map<int64_t, SavedCheckpoint> saved;
  std::set<int64_t> damaged = {};

  std::optional<int64_t> best_step() const {
    std::optional<int64_t> best;
    for (const auto& [step, one] : saved) {
      if (options.monitor.empty() || !one.value || std::isnan(*one.value)) continue;
      const double value = *one.value;
      const double best_value = best ? *saved.at(*best).value : 0;
      const bool better =
          !best || (options.mode == "max" ? value > best_value : value < best_value);
      if (better && exists(directory + "/" + checkpoint_name(step))) best = step;
    }
    return best;
  }

  /// Removes the checkpoints that need not be kept, never the newest.
  void prune(int64_t newest) const {
    const std::optional<int64_t> best = best_step();
    std::vector<CheckpointEntry> entries = list_checkpoints(directory);
    std::erase_if(entries, [&](const CheckpointEntry& entry) {
      return entry.step == newest || !saved.count(entry.step);
    });
    std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
      return saved.at(a.step).number < saved.at(b.step).number;
    });
    int64_t retained = 1;
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      const bool broken = damaged.count(entry->step) > 0;
      const bool stays = !options.max_to_keep || retained < *options.max_to_keep;
      if (!broken) ++retained;
      if (broken || (!stays && entry->step != best)) remove(entry->folder);
    }
  }

 private:
  /// Only warns on failure: the new checkpoint is complete anyway.
  static void remove(const std::string& folder) {
    try {
      remove_checkpoint(folder);
    } catch (const FileError& error) {
      std::cerr << "Warning: an old checkpoint could not be removed: " << error.what() << '\n';
    }
  }
};

CheckpointManager::CheckpointManager(const Checkpoint& checkpoint, const std::string& directory,
                                     const CheckpointManagerOptions& options)
    : checkpoint_(checkpoint), directory_(directory), options_(options) {
  check(directory, options);
  collectively(checkpoint_.mesh(), directory, [&] { read_saved(); });
}

void CheckpointManager::read_saved() {
  for (const CheckpointEntry& entry : list_checkpoints(directory_)) {
    try {
      const Json note = about(entry.folder);
      if (note.is_null()) continue;
      const Json value =
          note["metrics"].is_object() ? note["metrics"].value(options_.monitor, Json()) : Json();
      SavedCheckpoint& checkpoint = saved_[entry.step] = {.number = number_in(note)};
      if (value.is_number()) checkpoint.value = value.get<double>();
    } catch (const FileError&) {
      // Unknown origin; restoring will report what is wrong with it.
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
    claim();
    Retention retention{directory_, options_, saved_, damaged_};
    const int64_t number = next_number();
    retention.saved[step] = {.number = number, .value = find_value(metrics, options_.monitor)};
    retention.damaged.erase(step);
    warn_without_monitor(metrics);
    checkpoint_.save(folder, {.asynchronous = options_.asynchronous,
                              .about = {{"metrics", values}, {"number", number}},
                              .then = [retention, step] { retention.prune(step); }});
    saved_ = retention.saved;
    damaged_ = retention.damaged;
    return folder;
  } catch (const FileError& error) {
    if (options_.save_failure == SaveFailure::raise) throw;
    report(error.what());
    return "";
  }
}

void CheckpointManager::claim() {
  // At each save, since a run on another machine may have taken over the directory.
  collectively(checkpoint_.mesh(), directory_, [&] {
    if (!is_first_rank(checkpoint_.mesh()) || (claim_ && claim_->is_valid())) return;
    claim_ = claim_directory(directory_);
    if (claim_) remove_leftovers(directory_);
  });
}

int64_t CheckpointManager::next_number() const {
  int64_t highest = -1;
  for (const auto& [step, one] : saved_) highest = std::max(highest, one.number);
  return highest + 1;
}

void CheckpointManager::warn_without_monitor(const Logs& metrics) {
  if (warned_ || options_.monitor.empty() || find_value(metrics, options_.monitor)) return;
  warned_ = true;
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  warn_once(checkpoint_.mesh(),
            str("Can keep the best checkpoint only with ", options_.monitor,
                " available. There are: ", names.empty() ? "none" : join(names, ", "), "."));
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

std::vector<CheckpointEntry> CheckpointManager::by_age() const {
  std::vector<std::pair<int64_t, CheckpointEntry>> numbered;
  int64_t number = -1;
  for (const CheckpointEntry& entry : list_checkpoints(directory_)) {
    try {
      number = number_in(about(entry.folder));
    } catch (const FileError&) {
      // With an unknown number it counts as newer than the checkpoint of the step before.
      const auto it = saved_.find(entry.step);
      if (it != saved_.end()) number = it->second.number;
    }
    numbered.emplace_back(number, entry);
  }
  std::stable_sort(numbered.begin(), numbered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CheckpointEntry> entries;
  for (const auto& [key, entry] : numbered) entries.push_back(entry);
  return entries;
}

std::vector<CheckpointEntry> CheckpointManager::common_by_age() const {
  const std::string text = broadcast_text(checkpoint_.mesh(), directory_, [&] {
    Json steps = Json::array();
    if (!is_first_rank(checkpoint_.mesh())) return std::string();
    for (const CheckpointEntry& entry : by_age()) steps.push_back(entry.step);
    return to_json_text(steps, -1);
  });
  std::vector<CheckpointEntry> entries;
  for (const auto step :
       json_as<std::vector<int64_t>>(parse_json(text, directory_), JsonPath(directory_))) {
    entries.push_back({step, directory_ + "/" + checkpoint_name(step)});
  }
  return entries;
}

std::vector<std::string> CheckpointManager::checkpoints() const {
  std::vector<std::string> folders;
  for (const CheckpointEntry& entry : by_age()) {
    if (!damaged_.count(entry.step)) folders.push_back(entry.folder);
  }
  return folders;
}

std::optional<std::string> CheckpointManager::latest() const {
  const std::vector<std::string> folders = checkpoints();
  return folders.empty() ? std::nullopt : std::optional(folders.back());
}

std::optional<std::string> CheckpointManager::best() const {
  const std::optional<int64_t> step = Retention{directory_, options_, saved_}.best_step();
  if (!step) return std::nullopt;
  return directory_ + "/" + checkpoint_name(*step);
}

std::optional<std::string> CheckpointManager::restore_latest(
    const CheckpointRestoreOptions& options) {
  wait();
  std::exception_ptr first;
  const std::vector<CheckpointEntry> entries = common_by_age();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      checkpoint_.restore(entry->folder, options);
      return entry->folder;
    } catch (const CheckpointMismatch&) {
      throw;
    } catch (const FileError& error) {
      if (options_.strict || entries.size() == 1) throw;
      if (!first) {
        warn_once(checkpoint_.mesh(),
                  str("a checkpoint is damaged, falling back to the previous one: ", error.what()));
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
  collectively(checkpoint_.mesh(), directory_, [&] {
    if (!is_first_rank(checkpoint_.mesh())) return;
    for (const CheckpointEntry& entry : list_checkpoints(directory_)) {
      if (saved_.count(entry.step)) remove_checkpoint(entry.folder);
    }
    if (claim_) claim_->end();
    std::error_code not_empty;
    std::filesystem::remove(directory_, not_empty);
  });
  saved_.clear();
  claim_.reset();
}

}  // namespace tessera
