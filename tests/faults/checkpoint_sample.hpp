#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

/// Writes a checkpoint whose bytes and state all encode `step`: a tensor of `bytes` bytes, and one
/// in two pieces. With two writers the second writes one of the pieces and the first tensor.
inline void save_step(const std::string& folder, int64_t step, size_t bytes = 64,
                      const CheckpointWriterOptions& options = {}) {
  const int other = options.writers - 1;
  const std::vector<uint8_t> whole(bytes, static_cast<uint8_t>(step));
  const std::vector<int64_t> half(4, step);
  const std::span<const std::byte> data = std::as_bytes(std::span(half));
  const auto size = static_cast<int64_t>(bytes);
  write_checkpoint(folder, {{"whole", "U8", {size}}, {"halves", "I64", {2, 4}}},
                   {{"whole", {0}, {size}, std::as_bytes(std::span(whole)), other},
                    {"halves", {0, 0}, {1, 4}, data, 0},
                    {"halves", {1, 0}, {2, 4}, data, other}},
                   {{"step", step}}, options);
}

/// Returns the step that a checkpoint of save_step() encodes; throws if its parts disagree.
inline int64_t load_step(const std::string& folder) {
  const CheckpointReader reader(folder);
  reader.verify();
  const auto step = reader.state().at("step").get<int64_t>();
  const CheckpointTensor& tensor = reader.at("whole");
  std::vector<uint8_t> whole(static_cast<size_t>(tensor.shape[0]));
  reader.read("whole", {0}, tensor.shape, std::as_writable_bytes(std::span(whole)));
  std::vector<int64_t> halves(8);
  reader.read("halves", {0, 0}, {2, 4}, std::as_writable_bytes(std::span(halves)));
  const bool same =
      std::count(whole.begin(), whole.end(), static_cast<uint8_t>(step)) == tensor.shape[0] &&
      std::count(halves.begin(), halves.end(), step) == 8;
  if (!same) throw FileError(folder, str("step ", step, " everywhere"), "another step", "");
  return step;
}

/// Returns the step of a checkpoint, or -1 for none; throws for a damaged one.
inline int64_t step_at(const std::string& folder) {
  return is_checkpoint(folder) ? load_step(folder) : -1;
}

/// Returns the sorted names of a folder's entries.
inline std::vector<std::string> entries_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The setting of a failing save: with a previous checkpoint or without; with or without the system
/// call that exchanges two folders.
struct Scene {
  bool replaces = true;
  bool no_exchange = false;

  std::string folder(const TempFolder& root) const { return (root / "run/latest").string(); }
  int64_t before() const { return replaces ? 1 : -1; }
  void set(const TempFolder& root) const {
    std::filesystem::remove_all(root / "run");
    if (replaces) save_step(folder(root), 1);
  }
};

inline const std::vector<Scene> scenes{{true, false}, {true, true}, {false, false}};

/// Runs `work` in a process of its own; returns its exit code, or 128 + the signal that ended it.
template <class Work>
int run_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      ::_exit(work());
    } catch (...) {
      ::_exit(70);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tessera::test
