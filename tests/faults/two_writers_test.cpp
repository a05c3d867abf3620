#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "tests/faults/checkpoint_sample.hpp"
#include "tests/faults/io_faults.hpp"
#include "tests/faults/text_pair.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace two_writers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

namespace fs = std::filesystem;

/// A writer's exit codes.
enum Code : int { saved = 0, other_failed = 11, alone = 12, own_error = 13 };

/// Saves step 2 as `rank` of two and returns the outcome.
Code save_as(int rank, TextPair& pair, const std::string& folder) {
  try {
    save_step(folder, 2, 64, pair.act_as(rank));
    return saved;
  } catch (const RankFailures& error) {
    const bool exact = error.failures().size() == 1 && error.failures().count(1 - rank) == 1;
    return exact ? other_failed : own_error;
  } catch (const CommError&) {
    return alone;
  } catch (const FileError&) {
    return own_error;
  }
}

int code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Saves as `rank` here and as the other rank in a process of its own, whose exit code is stored in
/// `other`.
Code save_here(int rank, const std::string& folder, const IoFaults& faults, int& other,
               std::vector<IoCall>* calls = nullptr, std::string* text = nullptr) {
  TextPair pair;
  const pid_t child = ::fork();
  if (child == 0) {
    start_io_faults({.no_exchange = faults.no_exchange});
    ::_exit(save_as(1 - rank, pair, folder));
  }
  // Closing the other end in act_as() is not one of the save's calls.
  const CheckpointWriterOptions options = pair.act_as(rank);
  Code code = saved;
  start_io_faults(faults);
  try {
    save_step(folder, 2, 64, options);
  } catch (const RankFailures&) {
    code = other_failed;
  } catch (const FileError& error) {
    code = own_error;
    if (text != nullptr) *text = error.what();
  }
  std::vector<IoCall> made = stop_io_faults();
  if (calls != nullptr) *calls = std::move(made);
  other = code_of(child);
  return code;
}

std::vector<IoCall> calls_of(int rank, const Scene& scene, const TempFolder& root) {
  scene.set(root);
  std::vector<IoCall> calls;
  int other = -1;
  REQUIRE(save_here(rank, scene.folder(root), {.no_exchange = scene.no_exchange}, other, &calls) ==
          saved);
  REQUIRE(other == saved);
  REQUIRE(load_step(scene.folder(root)) == 2);
  return calls;
}

}  // namespace

TEST_CASE("two writers, one crashing before any of its calls, leave the old or the new save") {
  const TempFolder root;
  for (const Scene& scene : scenes) {
    for (const int rank : {0, 1}) {
      const std::vector<IoCall> calls = calls_of(rank, scene, root);
      REQUIRE(calls.size() > (rank == 0 ? 20 : 3));
      for (size_t at = 1; at <= calls.size(); ++at) {
        CAPTURE(scene.replaces, scene.no_exchange, rank, at, calls[at - 1].name,
                calls[at - 1].path);
        scene.set(root);
        TextPair pair;
        const std::string folder = scene.folder(root);
        const pid_t ends = ::fork();
        if (ends == 0) {
          const CheckpointWriterOptions options = pair.act_as(rank);
          start_io_faults(
              {.at = static_cast<int>(at), .crash = true, .no_exchange = scene.no_exchange});
          save_step(folder, 2, 64, options);
          ::_exit(saved);
        }
        const pid_t stays = ::fork();
        if (stays == 0) {
          start_io_faults({.no_exchange = scene.no_exchange});
          ::_exit(save_as(1 - rank, pair, folder));
        }
        pair.leave();
        REQUIRE(code_of(ends) == crash_exit_code);
        const int other = code_of(stays);
        const int64_t step = step_at(folder);
        CHECK((other == alone || (other == saved && step == 2)));
        CHECK((step == scene.before() || step == 2));
        if (!fs::exists(root / "run")) continue;
        // Rank 0 cleans up if it stays alive.
        if (rank == 1) CHECK(entries_in(root / "run").size() == (step < 0 ? 0 : 1));
        remove_leftovers((root / "run").string());
        CHECK(step_at(folder) == step);
        CHECK(entries_in(root / "run").size() == (step < 0 ? 0 : 1));
        save_step(folder, 3);
        CHECK(load_step(folder) == 3);
      }
    }
  }
}

TEST_CASE("if any call of two writers fails, both report it and leave the old checkpoint") {
  const TempFolder root;
  const std::vector<std::string> files = open_files();
  for (const Scene& scene : scenes) {
    for (const int rank : {0, 1}) {
      const std::vector<IoCall> calls = calls_of(rank, scene, root);
      for (const int error : {ENOSPC, EIO, EDQUOT, EINTR}) {
        for (size_t at = 1; at <= calls.size(); ++at) {
          const IoCall& call = calls[at - 1];
          CAPTURE(scene.replaces, scene.no_exchange, rank, at, call.name, call.path,
                  std::strerror(error));
          scene.set(root);
          std::string text;
          int other = -1;
          const Code code = save_here(
              rank, scene.folder(root),
              {.at = static_cast<int>(at), .error = error, .no_exchange = scene.no_exchange}, other,
              nullptr, &text);
          const bool removes = call.name == "unlink" || call.name == "rmdir";
          if (code == own_error) {
            CHECK(text.find(std::strerror(error)) != std::string::npos);
            CHECK(text.find((root / "run").string()) == 1);
            CHECK(other == other_failed);
          } else {
            CHECK(code == saved);
            CHECK(other == saved);
            const bool is_file = call.path.find("/shard-") != std::string::npos ||
                                 call.path.find("/index.") != std::string::npos;
            const bool looks = call.name == "close" || call.path == scene.folder(root);
            CHECK((error == EINTR || removes || (looks && !is_file)));
          }
          CHECK(step_at(scene.folder(root)) == (code == saved ? 2 : scene.before()));
          if (!removes && fs::exists(root / "run")) {
            CHECK(entries_in(root / "run").size() == (code == saved || scene.replaces ? 1 : 0));
          }
          CHECK(open_files() == files);
        }
      }
    }
  }
}

TEST_CASE("killing one of two writers at 150 random moments leaves the old or the new save") {
  const TempFolder root;
  const std::string folder = (root / "run/latest").string();
  void* memory = ::mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& done = *new (memory) std::atomic<int64_t>(0);
  std::mt19937 random(11);
  int good = 0;
  bool with_rest = false;
  for (int round = 0; round < 150; ++round) {
    remove_leftovers((root / "run").string());
    const int64_t first = done;
    TextPair pair;
    std::array<pid_t, 2> writers{};
    for (const int rank : {0, 1}) {
      const pid_t child = ::fork();
      if (child == 0) {
        try {
          const CheckpointWriterOptions options = pair.act_as(rank);
          for (int64_t step = first + 1;; ++step) {
            save_step(folder, step, 2'000'000, options);
            if (rank == 0) done = step;
          }
        } catch (const CommError&) {
          ::_exit(alone);
        } catch (const FileError&) {
          ::_exit(own_error);
        }
      }
      writers[static_cast<size_t>(rank)] = child;
    }
    pair.leave();
    const long wait = static_cast<long>(random() % 40'000);
    const timespec span{0, wait * 1000};
    ::nanosleep(&span, nullptr);
    const size_t victim = random() % 2;
    ::kill(writers[victim], SIGKILL);
    const int killed = code_of(writers[victim]);
    const int other = code_of(writers[1 - victim]);
    CAPTURE(round, victim, other, first, done.load());
    CHECK(killed == 128 + SIGKILL);
    CHECK(other == alone);
    const int64_t step = is_checkpoint(folder) ? load_step(folder) : 0;
    const bool as_expected = step == done || step == done + 1;
    CHECK(as_expected);
    good += as_expected;
    if (fs::exists(root / "run")) {
      const size_t entries = entries_in(root / "run").size();
      // Only the death of rank 0 leaves leftovers for the next run to remove.
      if (victim == 1) CHECK(entries == (step > 0 ? 1 : 0));
      with_rest = with_rest || entries > 1;
    }
    done = step;
  }
  CHECK(good == 150);
  CHECK(with_rest);
  CHECK(done > 20);
  remove_leftovers((root / "run").string());
  CHECK(entries_in(root / "run").size() == 1);
  ::munmap(memory, sizeof(done));
}

}  // namespace two_writers_test
