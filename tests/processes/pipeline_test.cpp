// Stages on 2 and 4 processes: each process compares its losses, weights, metrics, predictions and
// files with those of one device.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/pipeline/make_schedule.hpp>
#include <tessera/framework/pipeline/simulate_schedule.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed_of_run.hpp"

namespace pipeline_processes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Texts = std::vector<std::string>;

/// Trains in stages on `count` processes, and checks what each of them says of each training.
void check_trainings(int count, bool shared_memory, const Texts& trainings) {
  const TempFolder folder;
  const std::string list = std::accumulate(
      trainings.begin(), trainings.end(), std::string(),
      [](const std::string& all, const std::string& one) { return all + one + " "; });
  Processes processes(count, app_path("pipeline_program"),
                      {"trainings=" + list, str("shared_memory=", shared_memory ? 1 : 0),
                       "folder=" + folder.path().string()});
  for (const RankEnd& end : processes.wait(std::chrono::minutes(10))) {
    CAPTURE(count, shared_memory, end.err);
    REQUIRE(end.exit_code == 0);
    std::istringstream lines(end.out);
    Texts said;
    for (std::string line; std::getline(lines, line);) said.push_back(line);
    REQUIRE(said.size() == trainings.size());
    for (size_t t = 0; t < said.size(); ++t) CHECK(said[t] == trainings[t] + " equal");
  }
}

/// The trainings whose stages `count` processes share: alone, each with two stages or more, and
/// beside other dimensions.
Texts trainings(int count) {
  Texts all;
  for (const char* const schedule : {"gpipe", "1f1b", "zb_h1"}) {
    for (const int microbatches : {1, 3, 4, 8}) {
      const std::string how = str(":", schedule, ":", microbatches, ":");
      all.push_back(str("mlp", how, "stage=2,batch=2"));
      all.push_back(str("mlp", how, "batch=2,stage=2"));
      all.push_back(str("gpt", how, "stage=", count));
      all.push_back(str("gpt", how, "stage=2,batch=2,model=2"));
      all.push_back(str("masked", how, "stage=", count));
      all.push_back(str("masked", how, "stage=2,batch=2"));
    }
  }
  for (const char* const schedule : {"interleaved", "zb_v"}) {
    for (const int microbatches : {1, 3, 4, 8}) {
      const std::string how = str("gpt:", schedule, ":", microbatches, ":");
      all.push_back(str(how, "stage=2,batch=2"));
      all.push_back(str(how, "stage=4"));
      all.push_back(str("masked:", schedule, ":", microbatches, ":stage=2,batch=2"));
    }
  }
  return all;
}

/// The bytes that the device of a process held at the peak of a step.
struct Peak {
  double activations = 0, gradients = 0;
};

/// Trains 32 layers on each of two processes in steps of 64 rows a microbatch; returns what
/// each process measured, in the order of `how`, "SCHEDULE:MICROBATCHES".
std::vector<std::vector<Peak>> measured(const std::string& how) {
  Processes processes(2, app_path("pipeline_program"), {"stages=2", "measured=" + how});
  std::vector<std::vector<Peak>> all;
  for (const RankEnd& end : processes.wait(std::chrono::minutes(5))) {
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    std::istringstream lines(end.out);
    all.emplace_back();
    Peak peak;
    for (std::string name; lines >> name >> peak.activations >> peak.gradients;) {
      all.back().push_back(peak);
    }
  }
  return all;
}

/// Returns the microbatches whose activations a device holds at most, from the F of a stage to its
/// B or W. Between I and W it also holds the gradients of these activations, which are as large.
double microbatches_held(const PipelineSchedule& schedule, size_t device) {
  int64_t now = 0, most = 0;
  for (const PipelineAction& action : schedule.actions[device]) {
    if (action.kind == ActionKind::forward || action.kind == ActionKind::input_gradient) ++now;
    most = std::max(most, now);
    if (action.kind == ActionKind::backward) --now;
    if (action.kind == ActionKind::weight_gradient) now -= 2;
  }
  return double(most) / double(schedule.chunks());
}

/// The naps of a process in a step.
using Naps = std::vector<std::pair<int64_t, int64_t>>;

/// Runs steps whose stages sleep on `count` processes; returns each process' naps, by step.
std::vector<std::vector<Naps>> naps_of(int count, const std::string& how) {
  Processes processes(count, app_path("pipeline_program"),
                      {str("stages=", count), "naps=" + how, "milliseconds=20"});
  std::vector<std::vector<Naps>> steps(3, std::vector<Naps>(size_t(count)));
  const std::vector<RankEnd>& ends = processes.wait(std::chrono::minutes(5));
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    CAPTURE(how, ends[rank].err);
    REQUIRE(ends[rank].exit_code == 0);
    std::istringstream lines(ends[rank].out);
    size_t step = 0;
    for (int64_t begin = 0, end = 0; lines >> step >> begin >> end;) {
      steps.at(step - 1)[rank].emplace_back(begin, end);
    }
  }
  return steps;
}

/// Returns the part of the time from the first nap to the last that a process is awake, on average.
double idle_share(const std::vector<Naps>& naps) {
  int64_t first = naps[0][0].first, last = 0, asleep = 0;
  for (const Naps& here : naps) {
    for (const auto& [begin, end] : here) {
      first = std::min(first, begin);
      last = std::max(last, end);
      asleep += end - begin;
    }
  }
  return 1 - double(asleep) / double(last - first) / double(naps.size());
}

/// Whether two processes slept at the same time.
bool overlap(const Naps& a, const Naps& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) {
    return std::any_of(b.begin(), b.end(), [&](const auto& other) {
      return one.first < other.second && other.first < one.second;
    });
  });
}

}  // namespace

TEST_CASE("masks, documents and losses of experts in stages on 2 and 4 processes") {
  check_trainings(2, true, {"masked:1f1b:4:stage=2", "masked:zb_v:3:stage=2"});
  check_trainings(4, true, {"masked:zb_h1:3:stage=2,batch=2"});
}

TEST_CASE("the profiles of two processes show that their stages work at the same time") {
  const TempFolder folder;
  Processes processes(2, app_path("pipeline_program"),
                      {"stages=2", "naps=1f1b:4", "folder=" + folder.path().string()});
  for (const RankEnd& end : processes.wait(std::chrono::minutes(2))) {
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
  }
  std::vector<Naps> spans(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (const Json& event : read_json_file(folder / str("rank-", rank, ".json"))) {
      const std::string name = event.at("name");
      if (event.at("ph") != "X" || !name.ends_with(str(" stage ", rank))) continue;
      const double begin = event.at("ts"), length = event.at("dur");
      spans[size_t(rank)].emplace_back(int64_t(begin), int64_t(begin + length));
    }
    // Forward and backward, of four microbatches in three steps.
    CHECK(spans[size_t(rank)].size() == 24);
  }
  CHECK(overlap(spans[0], spans[1]));
}

TEST_CASE("stages on 2 and 4 processes train as one device does: pipelines drawn by a seed") {
  const uint64_t seed = seed_of_run();
  INFO("TESSERA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (const int count : {2, 4}) {
    for (const bool shared_memory : {true, false}) {
      Texts drawn = trainings(count);
      std::shuffle(drawn.begin(), drawn.end(), random);
      drawn.resize(3);
      check_trainings(count, shared_memory, drawn);
    }
  }
}

TEST_CASE(
    "a device holds the activations of its microbatches in flight, and one sum of gradients") {
  constexpr int64_t microbatches = 8;
  const Texts schedules = {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_v"};
  std::string all = "gpipe:4 1f1b:16";
  for (const std::string& schedule : schedules) all += str(" ", schedule, ":", microbatches);
  const auto peaks = measured(all);
  for (size_t device = 0; device < 2; ++device) {
    REQUIRE(peaks[device].size() == schedules.size() + 2);
    const Peak &few = peaks[device][0], &many = peaks[device][1];
    // GPipe holds all microbatches.
    const double microbatch = (peaks[device][2].activations - few.activations) / 4;
    REQUIRE(microbatch > 0);
    for (size_t i = 0; i < schedules.size(); ++i) {
      const ScheduleOptions options{
          .name = schedules[i], .devices = 2, .microbatches = microbatches};
      const double held = microbatches_held(make_schedule(options), device);
      const double seen = peaks[device][i + 2].activations / microbatch;
      CAPTURE(device, schedules[i], held, seen);
      CHECK(seen <= held + 0.25);
      CHECK(seen >= held - 0.25);
    }
    CHECK(many.gradients > 0);
    CHECK(many.gradients == peaks[device][3].gradients);
  }
}

TEST_CASE("stages on 2 and 4 processes train as one device does", "[nightly]") {
  for (const int count : {2, 4}) {
    for (const bool shared_memory : {true, false}) {
      check_trainings(count, shared_memory, trainings(count));
    }
  }
}

TEST_CASE("stages work at the same time, and are idle about as long as their schedule says",
          "[nightly]") {
  constexpr int64_t microbatches = 16;
  for (const int count : {2, 4}) {
    std::map<std::string, double> idle;
    for (const char* const schedule : {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_v"}) {
      const ScheduleOptions options{
          .name = schedule, .devices = count, .microbatches = microbatches};
      const PipelineSchedule made = make_schedule(options);
      const double planned = simulate_schedule(made, equal_costs(made)).idle_share;
      CAPTURE(count, schedule, planned);
      // The least of three steps, since other programs delay a step.
      double& least = idle[schedule] = 1;
      for (const std::vector<Naps>& naps : naps_of(count, str(schedule, ":", microbatches))) {
        for (const Naps& here : naps) {
          REQUIRE(here.size() == size_t(3 * made.chunks() * microbatches));
        }
        for (size_t p = 1; p < naps.size(); ++p) CHECK(overlap(naps[p - 1], naps[p]));
        least = std::min(least, idle_share(naps));
      }
      CAPTURE(least);
      CHECK(1 - least >= 0.85 * (1 - planned));
      CHECK(least >= planned - 0.01);
    }
    CHECK(idle["zb_v"] < idle["zb_h1"]);
    CHECK(idle["zb_h1"] < idle["1f1b"]);
  }
}

}  // namespace pipeline_processes_test
