#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

#include "apps/bench/compare.hpp"
#include "apps/bench/line_process.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

/// One of two ways to train a model.
struct Way {
  StepWork work;
  std::string who;
  std::vector<std::string> arguments(const std::string& way) const {
    return {work.name, "--device", "cpu", "--way", way};
  }
};

/// Returns the megabytes by which training grows a process. The third step is the first that is
/// replayed.
double step_growth(const Way& way) {
  const Contender contender = own_contender("", "", way.arguments("memory"));
  return LineProcess(contender.command).run(4).at("megabytes").get<double>();
}

/// Compares the times of steps, taking turns, and the memory that they need: of the way that needs
/// less memory with the other one.
void compare_ways(CompareRun& run, const Way& less, const Way& more,
                  std::optional<double> limit = std::nullopt) {
  // Steps are long, so that fewer suffice.
  const Figures times =
      take_turns({own_contender("less", less.who, less.arguments("step")),
                  own_contender("more", more.who, more.arguments("step"))},
                 {.rounds = run.rounds, .steps = std::max<int64_t>(run.steps / 8, 2)});
  run.comparison.add_own(less.work.title, times.at("less"));
  run.add_other(times, "less", "more", limit);
  Figure little{less.who, {}, "MB"}, much{more.who, {}, "MB"};
  for (int64_t round = 0; round < run.rounds; ++round) {
    little.rounds.push_back(step_growth(less));
    much.rounds.push_back(step_growth(more));
  }
  run.comparison.add_own(less.work.title + ", memory", little);
  run.comparison.add_other(much, ratio(little, much));
}

}  // namespace

void compare_remat(CompareRun& run) {
  const std::vector<StepWork> works = remat_works();
  compare_ways(run, {works[0], "ours, blocks rematerialized"}, {works[1], "ours, all saved"}, 1.4);
}

void compare_logits(CompareRun& run) {
  const std::vector<StepWork> works = logits_works();
  compare_ways(run, {works[0], "ours, logits of some rows at a time"},
               {works[1], "ours, whole logits"});
}

}  // namespace tessera::bench
