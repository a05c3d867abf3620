#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/owner.hpp>

namespace tessera::detail {

/// Where a checkpoint lies or will lie. Beside it, in the same parent, only these names are made:
/// "tmp.NAME.NUMBER" by own_number() while one is written or removed, and "tmp.NAME.former" for the
/// former one while it is replaced on a file system that cannot exchange two folders.
struct CheckpointPath {
  std::string parent;
  std::string name;

  std::string path() const { return parent + "/" + name; }
  std::string former() const { return parent + "/tmp." + name + ".former"; }
  /// The folder that is written before it is put here, by its number.
  std::string temporary(const std::string& number) const {
    return parent + "/tmp." + name + "." + number;
  }
};

/// The place of `folder`; a symbolic link to a folder is followed. Throws ConfigError if it has no
/// name.
CheckpointPath checkpoint_place(const std::string& folder);

/// What the name of a folder beside a checkpoint tells.
struct CheckpointLeftover {
  std::string name;            ///< of the checkpoint
  bool former = false;         ///< "tmp.NAME.former"
  std::optional<Owner> owner;  ///< absent there, and in "tmp.NAME.PID.N" of an earlier version
};

/// Absent for other names.
std::optional<CheckpointLeftover> leftover_of(const std::string& entry);

/// Throws FileError if `folder` is no folder, or holds anything that a checkpoint does not.
void check_only_checkpoint(const std::string& folder);

/// Takes a folder beside a checkpoint away from whoever writes to it, in one step, and removes it;
/// false, with the folder as it was, if it cannot or if more than a checkpoint is in it.
bool take_away(const std::string& folder, const CheckpointPath& place);

/// Removes a checkpoint's files, and the folder if nothing else is in it; whether it is gone.
bool remove_checkpoint_files(const std::string& folder);

/// Lock that a process holds on a folder it is writing until it ends, however it ends; invalid, and
/// errno EWOULDBLOCK, if another process holds it.
FileDescriptor try_lock_folder(const std::string& folder);

/// Writes a file that is not there yet, its bytes on disk when it returns. Throws FileError.
void write_new_file(const std::string& path, std::span<const std::span<const std::byte>> parts);

/// A folder of its own beside a place. What is in it is removed again at the end.
class StagingDirectory {
 public:
  /// Makes the folder, its parents too. Throws FileError.
  explicit StagingDirectory(const CheckpointPath& place);
  ~StagingDirectory();
  StagingDirectory(const StagingDirectory&) = delete;
  StagingDirectory& operator=(const StagingDirectory&) = delete;

  const std::string& path() const { return path_; }

  /// The number by which other processes find the folder: CheckpointPath::temporary().
  const std::string& number() const { return number_; }

  /// Puts the folder at its place in one step and on disk; what was there is removed after. Throws
  /// FileError, with the place as it was before. Where another process took the folder away this
  /// fails: what was put in place is whole.
  void commit();

  /// Takes what is at the place, in one step, so that it is removed at the end. Throws FileError,
  /// with the place as it was before.
  void take();

 private:
  enum class Step { none, renamed, exchanged, put_aside };

  bool make();
  /// Renames into the place and tells how; none, errno set, if it failed.
  Step put();
  Step put_by_two_renames();
  void undo(Step step);

  CheckpointPath place_;
  std::string number_;
  std::string path_;
  FileDescriptor lock_;
};

}  // namespace tessera::detail
