#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/owner.hpp>

namespace tessera::detail {

/// A checkpoint in the directory of a run.
struct CheckpointEntry {
  int64_t step = 0;
  std::string folder;
};

/// Returns the folder name of a step's checkpoint: "step-000123", with more digits for larger
/// steps.
std::string checkpoint_name(int64_t step);

/// Returns whether `folder` is a complete checkpoint, judged by its name and index only.
bool is_checkpoint(const std::string& folder);

/// Returns the checkpoints in `root` whose names are those of checkpoint_name(), by ascending step;
/// ignores everything else. Empty if `root` does not exist. Throws FileError if it cannot be read.
std::vector<CheckpointEntry> list_checkpoints(const std::string& root);

/// Removes a checkpoint atomically. Does nothing if there is none. Throws FileError, leaving the
/// folder unchanged, if it cannot be removed or contains anything that write_checkpoint() did not
/// write.
void remove_checkpoint(const std::string& folder);

/// Removes the unfinished checkpoints that killed processes left in `root`: folders with nothing
/// but files of write_checkpoint() that are is_abandoned() or whose owner is in `ended`. Each is
/// first renamed, so that an owner that is alive after all cannot commit it. Also finishes an
/// interrupted replacement. Returns how many folders it removed or put back.
int remove_leftovers(const std::string& root, const std::vector<Owner>& ended = {});

}  // namespace tessera::detail
