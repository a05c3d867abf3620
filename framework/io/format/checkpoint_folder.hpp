#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/owner.hpp>

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

/// Removes from `root` what processes left behind that were killed: unfinished checkpoints, with
/// nothing in them but files that write_checkpoint() wrote, that is_abandoned() or whose owner is
/// among `ended`. Each is taken away in one step: who was taken for dead in error cannot commit.
/// Finishes a replacement that was interrupted. Returns how many folders it removed or put back.
int remove_leftovers(const std::string& root, const std::vector<Owner>& ended = {});

}  // namespace tessera::detail
