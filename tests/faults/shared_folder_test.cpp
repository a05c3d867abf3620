#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <random>

#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/format/directory_claim.hpp>

#include "tests/faults/checkpoint_sample.hpp"
#include "tests/faults/io_faults.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace shared_folder_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using std::chrono::milliseconds;

/// State that the processes of two machines share.
struct Shared {
  std::atomic<int64_t> saved{0};  ///< highest step that is completely saved
  std::array<std::atomic<int64_t>, 2> claims{};
  std::array<std::atomic<int64_t>, 2> saves{};
};

void sleep_for(long microseconds) {
  const timespec span{microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
  ::nanosleep(&span, nullptr);
}

void raise_to(std::atomic<int64_t>& value, int64_t step) {
  int64_t before = value;
  while (before < step && !value.compare_exchange_weak(before, step)) {
  }
}

/// A run on one of the machines until it is killed: looks at the folder, claims it, and continues
/// from the newest checkpoint while its claim is valid.
[[noreturn]] void run(size_t machine, const std::string& root, bool no_exchange, Shared& shared) {
  for (;;) {
    // Discards the recorded calls.
    start_io_faults({.no_exchange = no_exchange, .machine = machine == 0 ? "node1" : "node2"});
    try {
      remove_leftovers(root);
      const auto claim = claim_directory(root, {.acquire_timeout = milliseconds(5),
                                                .heartbeat_interval = milliseconds(5),
                                                .heartbeat_timeout = milliseconds(60)});
      remove_leftovers(root);
      ++shared.claims[machine];
      std::vector<CheckpointEntry> entries = list_checkpoints(root);
      int64_t step = entries.empty() ? 0 : load_step(entries.back().folder);
      while (claim->is_valid()) {
        ++step;
        save_step(root + "/" + checkpoint_name(step), step, 300'000);
        raise_to(shared.saved, step);
        ++shared.saves[machine];
        save_step(root + "/latest", step, 1000);
        entries = list_checkpoints(root);
        for (; entries.size() > 2; entries.erase(entries.begin())) {
          remove_checkpoint(entries.front().folder);
        }
      }
    } catch (const FileError&) {
      // The other machine holds the folder.
    }
    stop_io_faults();
  }
}

}  // namespace

TEST_CASE("listing a folder from another machine does not disturb a save in progress") {
  for (const bool no_exchange : {false, true}) {
    const TempFolder root;
    const Scene scene{.replaces = true, .no_exchange = no_exchange};
    scene.set(root);
    int looks = 0;
    const auto look = [&](const std::string& text) {
      const int code = run_child([&] {
        start_io_faults({.no_exchange = no_exchange, .machine = "node2"});
        const int removed = remove_leftovers((root / "run").string());
        const auto claim = claim_directory((root / "run").string());
        return claim && claim->is_valid() ? removed : -1;
      });
      CHECK(code == 0);
      ++looks;
      return std::vector<std::string>{text};
    };
    start_io_faults({.no_exchange = no_exchange, .machine = "node1"});
    save_step(scene.folder(root), 2, 64, {.gather = look});
    stop_io_faults();
    CHECK(looks == 3);
    CHECK(load_step(scene.folder(root)) == 2);
    CHECK(entries_in(root / "run") == std::vector<std::string>{"latest"});
  }
}

TEST_CASE("two machines without shared locks lose no save, whichever is killed") {
  const TempFolder root;
  const std::string folder = root.path().string();
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) Shared;
  std::mt19937 random(5);
  constexpr int rounds = 100;
  int good = 0;
  for (int round = 0; round < rounds; ++round) {
    std::array<pid_t, 2> runs{};
    for (const size_t machine : {0, 1}) {
      runs[machine] = ::fork();
      if (runs[machine] == 0) run(machine, folder, round % 2 == 1, shared);
    }
    const size_t victim = random() % 2;
    sleep_for(static_cast<long>(random() % 60'000));
    // Kills the run, or stops it so long that the other one considers it dead.
    const bool stops = random() % 3 == 0;
    ::kill(runs[victim], stops ? SIGSTOP : SIGKILL);
    sleep_for(static_cast<long>(random() % 150'000));
    if (stops) {
      ::kill(runs[victim], SIGCONT);
      sleep_for(static_cast<long>(random() % 20'000));
    }
    for (const pid_t pid : runs) ::kill(pid, SIGKILL);
    for (const pid_t pid : runs) ::waitpid(pid, nullptr, 0);
    const std::vector<CheckpointEntry> entries = list_checkpoints(folder);
    const int64_t newest = entries.empty() ? 0 : load_step(entries.back().folder);
    CAPTURE(round, victim, stops, newest, shared.saved.load());
    CHECK(newest >= shared.saved);
    CHECK(step_at(folder + "/latest") >= (shared.saved > 1 ? 1 : -1));
    good += newest >= shared.saved;
  }
  CHECK(good == rounds);
  // Each machine claimed the folder and saved, in turns.
  for (const size_t machine : {0, 1}) {
    CHECK(shared.claims[machine] > rounds / 10);
    CHECK(shared.saves[machine] > rounds / 10);
  }
  const int code = run_child([&] {
    start_io_faults({.machine = "node1"});
    const auto claim = claim_directory(folder, {.heartbeat_timeout = milliseconds(60)});
    return remove_leftovers(folder) >= 0 && claim->is_valid() ? 0 : 1;
  });
  CHECK(code == 0);
  ::munmap(memory, sizeof(Shared));
}

}  // namespace shared_folder_test
