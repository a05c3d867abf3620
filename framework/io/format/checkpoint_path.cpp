#include <tessera/framework/io/format/checkpoint_path.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

bool is_checkpoint_file(const std::string& name) {
  if (name == checkpoint_index_file || name == checkpoint_checksum_file) return true;
  constexpr std::string_view before = "shard-";
  constexpr std::string_view after = ".safetensors";
  if (name.size() <= before.size() + after.size()) return false;
  if (!name.starts_with(before) || !name.ends_with(after)) return false;
  return is_number(
      std::string_view(name).substr(before.size(), name.size() - before.size() - after.size()));
}

}  // namespace

CheckpointPath split_checkpoint_path(const std::string& folder) {
  fs::path path = folder;
  if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  if (!is_folder(path) && leads_to_folder(path)) {
    if (const std::optional<std::string> real = real_path(path)) path = *real;
  }
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == ".." || folder.find('\0') != std::string::npos) {
    throw ConfigError("checkpoint", "the folder of a checkpoint has a name", in_quotes(folder),
                      "pass a path such as run/step-000100");
  }
  const std::string parent = path.parent_path().string();
  return {parent.empty() ? "." : parent, name};
}

std::optional<TemporaryFolderName> parse_temporary_folder_name(const std::string& entry) {
  constexpr std::string_view before = "tmp.";
  if (!entry.starts_with(before)) return std::nullopt;
  const std::string rest = entry.substr(before.size());
  const size_t last = rest.rfind('.');
  if (last == std::string::npos || last == 0) return std::nullopt;
  const std::string number = rest.substr(last + 1);
  if (number == "former") return TemporaryFolderName{rest.substr(0, last), true, std::nullopt};
  if (const std::optional<Owner> owner = owner_of(number)) {
    return TemporaryFolderName{rest.substr(0, last), false, owner};
  }
  const size_t middle = rest.rfind('.', last - 1);
  if (middle == std::string::npos || middle == 0 || !is_number(number)) return std::nullopt;
  if (!is_number(rest.substr(middle + 1, last - middle - 1))) return std::nullopt;
  return TemporaryFolderName{rest.substr(0, middle), false, std::nullopt};
}

void check_only_checkpoint(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) {
    if (errno == ENOENT) return;
    fail_read(folder);
  }
  std::string received = "not a folder";
  if (S_ISDIR(info.st_mode)) {
    std::error_code error;
    const std::vector<std::string> names = names_in(folder, error);
    if (error) {
      errno = error.value();
      fail_read(folder);
    }
    const auto other = std::find_if_not(names.begin(), names.end(), is_checkpoint_file);
    if (other == names.end()) return;
    received = "the file " + in_quotes(*other);
  }
  throw FileError(folder, "only a folder with a checkpoint and nothing else is replaced or removed",
                  received, "move it, or use another path");
}

bool remove_temporary_folder(const std::string& folder, const CheckpointPath& checkpoint) {
  try {
    check_only_checkpoint(folder);
  } catch (const FileError&) {
    return false;
  }
  // Only renamed: on a full disk no other folder could be created.
  const std::string renamed = checkpoint.temporary(own_number());
  return rename_path(folder, renamed) && remove_checkpoint_files(renamed);
}

bool remove_checkpoint_files(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (error) return false;
  // The index first, so that an interrupted removal leaves no valid checkpoint.
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == checkpoint_index_file; });
  for (const std::string& name : names) {
    if (is_checkpoint_file(name)) ::unlink(path_in(folder, name).c_str());
  }
  return ::rmdir(folder.c_str()) == 0;
}

void write_new_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  FileDescriptor file = open_descriptor(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  bool good = file.valid();
  for (std::span<const std::byte> part : parts) good = good && write_all(file.get(), part);
  good = good && sync_descriptor(file.get()) && file.reset();
  if (!good) fail_write(path);
}

StagingDirectory::StagingDirectory(const CheckpointPath& checkpoint) : checkpoint_(checkpoint) {
  if (!make_folders(checkpoint.parent)) fail_write(checkpoint.parent);
  do {
    number_ = own_number();
    path_ = checkpoint.temporary(number_);
  } while (!make());
}

StagingDirectory::~StagingDirectory() {
  if (path_.empty()) return;
  // Another process, not yet aware of the failure, may still write a file between the two steps.
  for (int tries = 0; tries < 10; ++tries) {
    if (remove_checkpoint_files(path_) || errno != ENOTEMPTY) return;
  }
}

bool StagingDirectory::make() {
  if (::mkdir(path_.c_str(), 0777) != 0) {
    if (errno == EEXIST) return false;
    fail_write(path_);
  }
  lock_ = open_descriptor(path_, O_RDONLY | O_DIRECTORY);
  if (!lock_.valid()) {
    const int error = errno;
    ::rmdir(path_.c_str());
    errno = error;
    fail_write(path_);
  }
  // Without lock support no process takes the folder for a leftover; with it, another process may
  // have done so before it was locked.
  return !lock_descriptor(lock_) || is_at(lock_, path_);
}

void StagingDirectory::commit() {
  if (!sync_folder(path_)) fail_write(path_);
  const Step step = move_into_place();
  if (step == Step::none) fail_write(checkpoint_.path());
  if (!sync_folder(checkpoint_.parent)) {
    const int error = errno;
    undo(step);
    errno = error;
    fail_write(checkpoint_.parent);
  }
  // An exchange leaves the previous folder at path_.
  if (step != Step::exchanged) path_.clear();
  remove_checkpoint_files(checkpoint_.previous());
}

StagingDirectory::Step StagingDirectory::move_into_place() {
  if (exchange_paths(path_, checkpoint_.path())) return Step::exchanged;
  if (errno == ENOENT) {
    if (rename_path(path_, checkpoint_.path())) return Step::renamed;
    // Another process has created the folder since.
    const bool late = errno == ENOTEMPTY || errno == EEXIST;
    if (!late) return Step::none;
    if (exchange_paths(path_, checkpoint_.path())) return Step::exchanged;
  }
  const bool unsupported = errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
  return unsupported ? replace_by_two_renames() : Step::none;
}

StagingDirectory::Step StagingDirectory::replace_by_two_renames() {
  const std::string target = checkpoint_.path();
  const std::string previous = checkpoint_.previous();
  struct stat info {};
  if (::lstat(target.c_str(), &info) != 0) {
    return rename_path(path_, target) ? Step::renamed : Step::none;
  }
  // Held so that no process takes the previous checkpoint for a leftover between the two renames.
  const FileDescriptor lock = try_lock_folder(target);
  remove_checkpoint_files(previous);
  if (!rename_path(target, previous)) return Step::none;
  if (rename_path(path_, target)) return Step::put_aside;
  const int error = errno;
  rename_path(previous, target);
  errno = error;
  return Step::none;
}

void StagingDirectory::undo(Step step) {
  if (step == Step::exchanged) {
    exchange_paths(path_, checkpoint_.path());
    return;
  }
  rename_path(checkpoint_.path(), path_);
  if (step != Step::put_aside || rename_path(checkpoint_.previous(), checkpoint_.path())) return;
  // Another process removed the previous checkpoint because a complete one was in place.
  if (rename_path(path_, checkpoint_.path())) path_.clear();
}

void StagingDirectory::take() {
  if (!rename_path(checkpoint_.path(), path_)) fail_write(checkpoint_.path());
  if (sync_folder(checkpoint_.parent)) return;
  const int error = errno;
  rename_path(path_, checkpoint_.path());
  path_.clear();
  errno = error;
  fail_write(checkpoint_.parent);
}

}  // namespace tessera::detail
