#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/owner.hpp>

namespace tessera::detail {

/// The path of a checkpoint, existing or not. Only these names are created beside it, in the same
/// parent: "tmp.NAME.NUMBER", by own_number(), while one is written or removed, and
/// "tmp.NAME.former" for the previous one while it is replaced on a file system that cannot
/// exchange two folders.
struct CheckpointPath {
  std::string parent;
  std::string name;

  std::string path() const { return parent + "/" + name; }
  std::string previous() const { return parent + "/tmp." + name + ".former"; }
  /// Returns the temporary folder in which the checkpoint is written, by its number.
  std::string temporary(const std::string& number) const {
    return parent + "/tmp." + name + "." + number;
  }
};

/// Splits `folder` into parent and name, following a symbolic link to a folder. Throws ConfigError
/// if it has no name.
CheckpointPath split_checkpoint_path(const std::string& folder);

/// The parsed name of a temporary folder beside a checkpoint.
struct TemporaryFolderName {
  std::string name;          ///< the checkpoint's name
  bool is_previous = false;  ///< "tmp.NAME.former"
  /// Absent for ".former", and for "tmp.NAME.PID.N" of an earlier version.
  std::optional<Owner> owner;
};

/// Parses the name of a temporary folder; absent for other names.
std::optional<TemporaryFolderName> parse_temporary_folder_name(const std::string& entry);

/// Throws FileError if `folder` is not a folder, or contains anything that does not belong to a
/// checkpoint.
void check_only_checkpoint(const std::string& folder);

/// Removes a temporary folder beside a checkpoint: renames it first, so that no other process can
/// commit it. Returns false if it cannot; the folder is unchanged if it contains other files or
/// cannot be renamed.
bool remove_temporary_folder(const std::string& folder, const CheckpointPath& checkpoint);

/// Removes a checkpoint's files, and the folder if it is empty then. Returns whether the folder is
/// gone.
bool remove_checkpoint_files(const std::string& folder);

/// Writes a new file and syncs it to disk. Throws FileError, also if it exists.
void write_new_file(const std::string& path, std::span<const std::span<const std::byte>> parts);

/// A temporary folder beside a checkpoint's path, removed by the destructor.
class StagingDirectory {
 public:
  /// Creates the folder and its parents. Throws FileError.
  explicit StagingDirectory(const CheckpointPath& checkpoint);
  ~StagingDirectory();
  StagingDirectory(const StagingDirectory&) = delete;
  StagingDirectory& operator=(const StagingDirectory&) = delete;

  const std::string& path() const { return path_; }

  /// Returns the number by which other processes find the folder: CheckpointPath::temporary().
  const std::string& number() const { return number_; }

  /// Renames the folder to the checkpoint's path atomically and syncs; then removes what was there.
  /// Throws FileError, leaving the path unchanged, also if another process took the folder away:
  /// whatever is committed is complete.
  void commit();

  /// Moves what is at the checkpoint's path to path() atomically; the destructor removes it. Throws
  /// FileError, leaving the checkpoint's path unchanged.
  void take();

 private:
  enum class Step { none, renamed, exchanged, put_aside };

  bool make();
  /// Renames the folder into place. Returns how; `none` with errno set on failure.
  Step move_into_place();
  Step replace_by_two_renames();
  void undo(Step step);

  CheckpointPath checkpoint_;
  std::string number_;
  std::string path_;
  FileDescriptor lock_;
};

}  // namespace tessera::detail
