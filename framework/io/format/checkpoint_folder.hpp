#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A checkpoint in the folder of a run.
struct CheckpointEntry {
  int64_t step = 0;
  std::string folder;
};

/// Folder name of a step's checkpoint: "step-000123"; steps of more digits take more.
std::string checkpoint_name(int64_t step);

/// Whether a whole checkpoint lies at `folder`, as far as its name and index tell.
bool is_checkpoint(const std::string& folder);

/// The checkpoints in `root` that have a name of checkpoint_name(), oldest step first; whatever
/// else lies there is left out. Empty if there is no such folder. Throws FileError if it cannot be
/// read.
std::vector<CheckpointEntry> list_checkpoints(const std::string& root);

/// Removes a checkpoint: it disappears in one step. Does nothing if there is none. Throws FileError
/// if it cannot, or if the folder holds anything that write_checkpoint() did not write; then it is
/// as it was.
void remove_checkpoint(const std::string& folder);

/// Removes from `root` what killed processes left behind: unfinished checkpoints that no living
/// process is writing, and of these only files that write_checkpoint() wrote. Finishes a
/// replacement that was interrupted. Returns how many folders it removed or put back.
int remove_leftovers(const std::string& root);

/// Keeps other processes from saving into a directory, which it makes if there is none, while the
/// result or a copy lives and the process does; nullptr where it cannot be made or locked. Within a
/// process it is shared. Throws FileError if another process holds it for `patience`.
std::shared_ptr<const FileDescriptor> claim_directory(
    const std::string& directory, std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace tessera::detail
