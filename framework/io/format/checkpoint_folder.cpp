#include <tessera/framework/io/format/checkpoint_folder.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>

namespace tessera::detail {
namespace {

constexpr std::string_view step_prefix = "step-";

/// Returns the names of the folders in `root`, without symbolic links.
std::vector<std::string> folders_in(const std::string& root) {
  std::error_code error;
  std::vector<std::string> names = names_in(root, error);
  std::erase_if(names, [&](const std::string& name) { return !is_folder(path_in(root, name)); });
  if (error && error != std::errc::no_such_file_or_directory) {
    throw FileError(root, "the folder of the checkpoints must be readable", error.message(),
                    "check the path and its permissions");
  }
  return names;
}

/// Returns the step that a folder is named after; negative for other names.
int64_t step_of(const std::string& name) {
  if (!name.starts_with(step_prefix)) return -1;
  int64_t step = -1;
  std::from_chars(name.data() + step_prefix.size(), name.data() + name.size(), step);
  return step >= 0 && checkpoint_name(step) == name ? step : -1;
}

/// Removes an unfinished checkpoint that no process works on. Returns whether it did.
bool remove_unfinished_checkpoint(const std::string& folder, const CheckpointPath& checkpoint,
                                  const TemporaryFolderName& leftover,
                                  const std::vector<Owner>& ended) {
  const FileDescriptor lock = try_lock_folder(folder);
  if (!lock.valid() && errno == EWOULDBLOCK) return false;
  const bool known = leftover.owner && std::count(ended.begin(), ended.end(), *leftover.owner) > 0;
  return (known || is_abandoned(folder, leftover.owner)) &&
         remove_temporary_folder(folder, checkpoint);
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
  const CheckpointPath checkpoint = split_checkpoint_path(folder);
  return exists(path_in(checkpoint.path(), checkpoint_index_file)) ||
         (!exists(checkpoint.path()) &&
          exists(path_in(checkpoint.previous(), checkpoint_index_file)));
}

std::vector<CheckpointEntry> list_checkpoints(const std::string& root) {
  std::vector<CheckpointEntry> checkpoints;
  for (const std::string& entry : folders_in(root)) {
    const std::optional<TemporaryFolderName> leftover = parse_temporary_folder_name(entry);
    // An interrupted replacement leaves a complete checkpoint under the ".former" name.
    const bool is_previous = leftover && leftover->is_previous;
    const std::string name = !leftover ? entry : is_previous ? leftover->name : "";
    const int64_t step = step_of(name);
    const std::string folder = path_in(root, name);
    if (step < 0 || (is_previous && exists(folder)) || !is_checkpoint(folder)) continue;
    checkpoints.push_back({step, folder});
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  return checkpoints;
}

void remove_checkpoint(const std::string& folder) {
  const CheckpointPath checkpoint = split_checkpoint_path(folder);
  const bool had_previous = exists(checkpoint.previous());
  if (exists(checkpoint.path())) check_only_checkpoint(checkpoint.path());
  // The previous one first, or it would be taken for the checkpoint again.
  if (had_previous) remove_checkpoint_files(checkpoint.previous());
  if (!exists(checkpoint.path())) return;
  StagingDirectory trash(checkpoint);
  trash.take();
}

int remove_leftovers(const std::string& root, const std::vector<Owner>& ended) {
  int count = 0;
  std::set<std::string> in_work;
  const std::vector<std::string> entries = folders_in(root);
  for (const std::string& entry : entries) {
    const std::optional<TemporaryFolderName> leftover = parse_temporary_folder_name(entry);
    if (!leftover || leftover->is_previous) continue;
    const bool taken = remove_unfinished_checkpoint(path_in(root, entry), {root, leftover->name},
                                                    *leftover, ended);
    count += taken;
    if (!taken) in_work.insert(leftover->name);
  }
  for (const std::string& entry : entries) {
    const std::optional<TemporaryFolderName> leftover = parse_temporary_folder_name(entry);
    if (!leftover || !leftover->is_previous) continue;
    const CheckpointPath checkpoint{root, leftover->name};
    if (exists(checkpoint.path())) {
      count += remove_temporary_folder(checkpoint.previous(), checkpoint);
    } else if (!in_work.contains(leftover->name)) {
      // A process that is replacing the checkpoint keeps its temporary folder until it is done.
      count += rename_path(checkpoint.previous(), checkpoint.path());
    }
  }
  return count;
}

}  // namespace tessera::detail
