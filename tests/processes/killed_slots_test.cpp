#include <algorithm>
#include <csignal>
#include <random>
#include <sstream>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace killed_slots_test {

using namespace tessera::test;

namespace {

/// The weights and slots of a rank at its end.
struct FinalState {
  std::string weights, slots;  ///< hashes of its shards
  int64_t stored = -1;         ///< the number of slots on disk
};

FinalState final_state(const RankEnd& end) {
  CAPTURE(end.out, end.err);
  REQUIRE(end.exit_code == 0);
  FinalState state;
  std::istringstream words(end.out);
  for (std::string word; words >> word;) {
    if (word == "weights") words >> state.weights;
    if (word == "slots") words >> state.slots;
    if (word == "stored") words >> state.stored;
  }
  REQUIRE_FALSE(state.weights.empty());
  REQUIRE_FALSE(state.slots.empty());
  return state;
}

/// Trains on `count` processes, of which one is killed `kills` times, each time at another moment
/// of a later step, and all are then started again. Compares weights and slots with those of a run
/// that is never killed and has its slots in memory.
void check_killed(int count, int kills, int64_t epochs) {
  constexpr int64_t steps_per_epoch = 11;
  const TempFolder slots, backup;
  // Four devices on any number of processes, so that an optimizer step is the same computation.
  const std::vector<std::string> arguments = {"mesh=batch=4", "layouts=fsdp", "rows=330",
                                              "epochs=" + std::to_string(epochs)};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), arguments.begin(), arguments.end());
    return more;
  };
  const std::vector<std::string> stored =
      with({"slots=" + slots.path().string(), "backup=" + backup.path().string(), "every=3"});
  const std::vector<RankEnd> undisturbed = run_ranks_program(count, with({"slots=memory"}));

  std::mt19937 random(static_cast<unsigned>(100 * count + kills));
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  // Not in the first step, which makes the files, nor in the last one, which the others may finish.
  const int64_t part = (epochs * steps_per_epoch - 2) / kills;
  REQUIRE(part > 0);
  for (int kill = 0; kill < kills; ++kill) {
    const int64_t step = 1 + kill * part + below(part);
    // Within a step, whether it takes one millisecond or thirty.
    const int64_t longest = int64_t{1} << (9 + below(7)), delay = 1 + below(longest);
    const auto rank = static_cast<size_t>(below(count));
    CAPTURE(kill, step, delay, rank);
    std::vector<std::string> killed = stored;
    killed.insert(killed.end(), {"fault=kill", "at=forward", "rank=" + std::to_string(rank),
                                 "step=" + std::to_string(step), "delay=" + std::to_string(delay)});
    const std::vector<RankEnd> ends = run_ranks_program(count, killed);
    for (size_t r = 0; r < ends.size(); ++r) {
      CAPTURE(r, ends[r].out, ends[r].err);
      CHECK((r == rank ? ends[r].exit_code == 128 + SIGKILL : ends[r].exit_code > 0));
    }
    CHECK(std::filesystem::is_empty(slots.path()));
  }

  const std::vector<RankEnd> resumed = run_ranks_program(count, stored);
  for (size_t r = 0; r < resumed.size(); ++r) {
    const FinalState expected = final_state(undisturbed[r]), actual = final_state(resumed[r]);
    CAPTURE(r, resumed[r].out);
    CHECK(expected.stored == 0);
    // Adam's two for each of the kernels and biases of three layers.
    CHECK(actual.stored == 12);
    CHECK(actual.weights == expected.weights);
    CHECK(actual.slots == expected.slots);
  }
  // It has resumed, not started from the beginning.
  const size_t steps = losses(resumed[0]).size();
  CHECK(steps > 0);
  CHECK(steps < static_cast<size_t>(epochs * steps_per_epoch));
  CHECK(std::filesystem::is_empty(slots.path()));
}

}  // namespace

TEST_CASE("two processes killed with slots on disk resume to the same weights and slots") {
  check_killed(2, 2, 2);
}

TEST_CASE("one, two and four processes killed often with slots on disk resume to the same bits",
          "[nightly]") {
  const int count = GENERATE(1, 2, 4);
  CAPTURE(count);
  check_killed(count, 20, 8);
}

}  // namespace killed_slots_test
