#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <random>

#include "tests/faults/checkpoint_sample.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

#include <tessera/framework/io/format/checkpoint_folder.hpp>

namespace kill_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// The last steps that a saver has completely saved.
struct Done {
  std::atomic<int64_t> numbered{0};
  std::atomic<int64_t> latest{0};
};

/// A Done in memory shared by parent and child.
class SharedDone {
 public:
  SharedDone()
      : memory_(::mmap(nullptr, sizeof(Done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)),
        value_(new (memory_) Done) {}
  ~SharedDone() { ::munmap(memory_, sizeof(Done)); }
  SharedDone(const SharedDone&) = delete;
  SharedDone& operator=(const SharedDone&) = delete;
  Done& operator*() const { return *value_; }
  Done* operator->() const { return value_; }

 private:
  void* memory_;
  Done* value_;
};

struct Saver {
  std::string root;
  size_t bytes = 0;
  size_t keep = 0;

  int64_t newest() const {
    const std::vector<CheckpointEntry> entries = list_checkpoints(root);
    return entries.empty() ? 0 : load_step(entries.back().folder);
  }

  /// Continues from the newest checkpoint: removes old ones and saves the next step, also as
  /// "latest", `steps` times or until it is killed.
  int run(Done& done, int64_t steps = INT64_MAX) const {
    remove_leftovers(root);
    int64_t step = newest();
    for (int64_t i = 0; i < steps; ++i) {
      std::vector<CheckpointEntry> entries = list_checkpoints(root);
      for (; entries.size() >= keep; entries.erase(entries.begin())) {
        remove_checkpoint(entries.front().folder);
      }
      ++step;
      save_step(root + "/" + checkpoint_name(step), step, bytes);
      done.numbered = step;
      save_step(root + "/latest", step, bytes / 2);
      done.latest = step;
    }
    return 0;
  }
};

int64_t load_latest(const Saver& saver) {
  const std::string folder = saver.root + "/latest";
  return is_checkpoint(folder) ? load_step(folder) : 0;
}

void sleep_microseconds(long microseconds) {
  const timespec span{microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
  ::nanosleep(&span, nullptr);
}

/// Kills a saver `kills` times, each after a random time of up to two steps. Checks each time that
/// the newest checkpoint is complete: the last finished one or the one started after it.
void kill_savers(const Saver& saver, int kills) {
  using std::chrono::steady_clock;
  const SharedDone done;
  std::mt19937 random(7);
  const steady_clock::time_point begin = steady_clock::now();
  REQUIRE(saver.run(*done, 5) == 0);
  const auto spent =
      std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begin);
  const long max_microseconds = std::clamp<long>(spent.count() * 2 / 5, 2000, 150'000);
  int good = 0;
  for (int attempt = 0; attempt < kills; ++attempt) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(saver.run(*done));
    sleep_microseconds(static_cast<long>(random() % max_microseconds));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const int64_t newest = saver.newest();
    const int64_t latest = load_latest(saver);
    CAPTURE(attempt, done->numbered.load(), newest, done->latest.load(), latest);
    const bool as_expected = newest - done->numbered >= 0 && newest - done->numbered <= 1 &&
                             (latest == done->latest || latest == done->numbered);
    CHECK(as_expected);
    good += as_expected;
    done->numbered = newest;
    done->latest = latest;
  }
  CHECK(good == kills);
  // Enough was saved for some kills to have hit saves.
  CHECK(done->numbered > kills / 20);
  remove_leftovers(saver.root);
  for (const auto& entry : std::filesystem::directory_iterator(saver.root)) {
    CHECK(entry.path().filename().string().rfind("tmp.", 0) != 0);
  }
}

}  // namespace

TEST_CASE("a saver killed at 300 random moments leaves the old or the new checkpoint") {
  const TempFolder root;
  kill_savers({.root = root.path().string(), .bytes = 4'000'000, .keep = 2}, 300);
}

TEST_CASE("savers that are killed while they remove old checkpoints never lose the newest",
          "[nightly]") {
  const TempFolder root;
  kill_savers({.root = root.path().string(), .bytes = 1000, .keep = 3}, 200);
}

TEST_CASE("a reader concurrent with a writer always finds a complete checkpoint") {
  const TempFolder root;
  const Saver saver{.root = root.path().string(), .bytes = 65536, .keep = 3};
  const SharedDone done;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(saver.run(*done, 200));
  int reads = 0;
  int64_t last = 0;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (!is_checkpoint(saver.root + "/latest")) continue;
    const int64_t step = load_step(saver.root + "/latest");
    CHECK(step >= last);
    last = step;
    const int64_t before = done->numbered;
    const std::vector<CheckpointEntry> entries = list_checkpoints(saver.root);
    if (entries.empty()) {
      // The newest checkpoint was removed between listing and reading it.
      CHECK(done->numbered >= before + 2);
      continue;
    }
    try {
      const int64_t found = load_step(entries.back().folder);
      CHECK(found == entries.back().step);
    } catch (const FileError&) {
      // A checkpoint is removed before the third save after it.
      CHECK(done->numbered >= entries.back().step + 2);
    }
    ++reads;
  }
  CHECK(status == 0);
  CHECK(load_step(saver.root + "/latest") == 200);
  CHECK(reads > 20);
}

}  // namespace kill_test
