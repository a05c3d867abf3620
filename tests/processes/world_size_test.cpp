// The bits of a training on 1, 2, 3, 4 and 8 processes.
#include <algorithm>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace world_size_test {

using namespace tessera;
using namespace tessera::test;

namespace {

using Words = std::vector<std::string>;

/// Returns the hash that rank_program printed, the same on every rank.
std::string bits(int count, const Words& arguments, const std::string& threads) {
  Processes processes(count, app_path("rank_program"), arguments, {{"OMP_NUM_THREADS", threads}});
  const std::vector<RankEnd> ends = processes.wait(std::chrono::minutes(2));
  for (const RankEnd& end : ends) {
    CAPTURE(count, arguments, end.err);
    REQUIRE(end.exit_code == 0);
    CHECK(end.err.empty());
    REQUIRE(end.out.starts_with("bits "));
    CHECK(end.out == ends[0].out);
  }
  return ends[0].out;
}

/// A network, its layouts and its mesh.
struct Training {
  std::string network, layouts, mesh;
  Words arguments(const Words& more = {}) const {
    Words words = {"network=" + network, "layouts=" + layouts, "mesh=" + mesh};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

/// The trainings over eight devices.
std::vector<Training> trainings() {
  std::vector<Training> all;
  for (const char* network : {"mlp", "cnn"}) {
    all.push_back({network, "data", "batch=8"});
    all.push_back({network, "fsdp", "batch=8"});
    all.push_back({network, "fsdp", "batch=4,model=2"});
    all.push_back({network, "tensor", "batch=4,model=2"});
    all.push_back({network, "tensor", "batch=2,model=4"});
  }
  return all;
}

}  // namespace

TEST_CASE("1, 2, 3, 4 and 8 processes give the same bits") {
  const auto& [training, more] = GENERATE(values<std::pair<Training, Words>>(
      {{{"mlp", "tensor", "batch=4,model=2"}, {"clip=1"}}, {{"cnn", "data", "batch=8"}, {}}}));
  const std::string one = bits(1, training.arguments(more), "2");
  for (const int count : {2, 3, 4, 8}) {
    CAPTURE(training.network, training.layouts, count);
    CHECK(bits(count, training.arguments(more), "1") == one);
  }
}

TEST_CASE("without world_size_invariant, 1 and 3 processes differ in their bits") {
  const Training training = {"mlp", "data", "batch=8"};
  CHECK(bits(1, training.arguments({"invariant=0"}), "1") !=
        bits(3, training.arguments({"invariant=0"}), "1"));
}

TEST_CASE("processes, threads, captures and transports do not change a bit", "[nightly]") {
  const Training training = GENERATE(from_range(trainings()));
  for (const Words& more : {Words{"clip=1"}, {"clip=1", "accumulate=3"}}) {
    Words words = more;
    words.emplace_back("batches=12");
    const std::string one = bits(1, training.arguments(words), "1");
    for (const int count : {1, 2, 3, 4, 8}) {
      for (const auto& [threads, way] : std::vector<std::pair<std::string, std::string>>{
               {"1", "eager=0"}, {"2", "eager=1"}, {"2", "shared_memory=0"}}) {
        CAPTURE(training.network, training.layouts, training.mesh, words, count, threads, way);
        Words all = words;
        all.push_back(way);
        CHECK(bits(count, training.arguments(all), threads) == one);
      }
    }
  }
}

}  // namespace world_size_test
