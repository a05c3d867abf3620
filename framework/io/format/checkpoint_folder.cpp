#include <tessera/framework/io/format/checkpoint_folder.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-";

/// Names of the folders in `root`, symbolic links to folders not counted.
std::vector<std::string> folders_in(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (fs::is_directory(at->symlink_status(ignored))) {
      names.push_back(at->path().filename().string());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw FileError(root, "the folder of the checkpoints must be readable", error.message(),
                    "check the path and its permissions");
  }
  return names;
}

/// The step that a folder is named after; negative for other names.
int64_t step_of(const std::string& name) {
  if (!name.starts_with(step_prefix)) return -1;
  int64_t step = -1;
  std::from_chars(name.data() + step_prefix.size(), name.data() + name.size(), step);
  return step >= 0 && checkpoint_name(step) == name ? step : -1;
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  if (step < 0) {
    throw ConfigError("checkpoint", "a step is 0 or more", str(step), "pass the optimizer's steps");
  }
  const std::string digits = std::to_string(step);
  return str(step_prefix, std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0'), digits);
}

bool is_checkpoint(const std::string& folder) {
  const CheckpointPath place = checkpoint_place(folder);
  return exists(place.path() + "/" + checkpoint_index_file) ||
         (!exists(place.path()) && exists(place.former() + "/" + checkpoint_index_file));
}

std::vector<CheckpointEntry> list_checkpoints(const std::string& root) {
  std::vector<CheckpointEntry> found;
  for (const std::string& entry : folders_in(root)) {
    const std::string owner = leftover_of(entry);
    // A replacement that was interrupted leaves a whole checkpoint under the other name.
    const bool former = entry.ends_with(".former");
    const std::string name = owner.empty() ? entry : former ? owner : "";
    const int64_t step = step_of(name);
    const std::string folder = root + "/" + name;
    if (step < 0 || (former && exists(folder)) || !is_checkpoint(folder)) continue;
    found.push_back({step, folder});
  }
  std::sort(found.begin(), found.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  return found;
}

void remove_checkpoint(const std::string& folder) {
  const CheckpointPath place = checkpoint_place(folder);
  const bool former = exists(place.former());
  if (exists(place.path())) check_only_checkpoint(place.path());
  // First, or it would stand for the checkpoint again.
  if (former) remove_checkpoint_files(place.former());
  if (!exists(place.path())) return;
  StagingDirectory trash(place);
  trash.take();
}

int remove_leftovers(const std::string& root) {
  int count = 0;
  for (const std::string& entry : folders_in(root)) {
    const std::string name = leftover_of(entry);
    if (name.empty()) continue;
    const std::string folder = root + "/" + entry;
    const FileDescriptor lock = try_lock_folder(folder);
    if (!lock.valid()) continue;
    const bool put_back = entry.ends_with(".former") && !exists(root + "/" + name);
    count += put_back ? rename_path(folder, root + "/" + name) : remove_checkpoint_files(folder);
  }
  return count;
}

std::shared_ptr<const FileDescriptor> claim_directory(const std::string& directory,
                                                  std::chrono::milliseconds patience) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const FileDescriptor>> held;
  const std::lock_guard<std::mutex> lock(mutex);
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string path = error ? directory : fs::canonical(directory, error).string();
  // Saving will say what is wrong.
  if (error) return nullptr;
  std::weak_ptr<const FileDescriptor>& known = held[path];
  if (auto claim = known.lock(); claim && is_at(*claim, path)) return claim;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    FileDescriptor opened = try_lock_folder(path);
    if (opened.valid()) {
      auto claim = std::make_shared<const FileDescriptor>(std::move(opened));
      known = claim;
      return claim;
    }
    if (errno != EWOULDBLOCK) return nullptr;
    // A process that was killed takes a moment to let go.
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw FileError(directory, "one run at a time saves its checkpoints here",
                  "another process that does", "end it, or use another directory");
}

}  // namespace tessera::detail
