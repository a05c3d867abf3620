// Trainings on 1, 2, 3, 4 and 8 processes: the same bits, and each process does its share.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <tuple>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed_of_run.hpp"
#include "tests/support/thread_communicator.hpp"

namespace world_size_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Texts = std::vector<std::string>;

/// What one process printed of a training.
struct Outcome {
  std::string bits;
  int64_t steps = 0;
  double flops = 0;     ///< of the products of matrices in this process
  double received = 0;  ///< by each device, as CommLog counts
};

/// How world_size_program is started.
struct Start {
  int count = 1;
  std::string threads = "1";
  bool shared_memory = true;
  int64_t batches = 4;  ///< of an epoch; there are two epochs
  bool even = false;    ///< whether the last batch is as large as the others
};

/// Runs these trainings, one after the other; returns what each rank printed of each.
std::vector<std::vector<Outcome>> run(const Start& start, const Texts& trainings) {
  const std::string list = std::accumulate(
      trainings.begin(), trainings.end(), std::string(),
      [](const std::string& all, const std::string& one) { return all + one + " "; });
  Processes processes(start.count, app_path("world_size_program"),
                      {"trainings=" + list, str("shared_memory=", start.shared_memory ? 1 : 0),
                       str("batches=", start.batches), str("even=", start.even ? 1 : 0)},
                      {{"OMP_NUM_THREADS", start.threads}});
  std::vector<std::vector<Outcome>> outcomes;
  for (const RankEnd& end : processes.wait(std::chrono::minutes(start.batches > 4 ? 30 : 3))) {
    CAPTURE(start.count, trainings, end.err);
    REQUIRE(end.exit_code == 0);
    std::istringstream lines(end.out);
    outcomes.emplace_back();
    for (Outcome one; lines >> one.bits >> one.steps >> one.flops >> one.received;) {
      outcomes.back().push_back(one);
    }
    REQUIRE(outcomes.back().size() == trainings.size());
  }
  return outcomes;
}

/// The trainings over eight devices, without the options "eager", "clip" and "accumulate".
Texts trainings() {
  Texts all;
  for (const char* network : {"mlp", "cnn", "text", "imdb"}) {
    for (const char* layouts : {"data:batch=8", "fsdp:batch=8", "fsdp:batch=4,model=2",
                                "zero2:batch=8", "hsdp:replica=2,batch=4"}) {
      all.push_back(str(network, ":", layouts));
    }
  }
  for (const char* network : {"mlp", "cnn", "text"}) {
    all.push_back(str(network, ":tensor:batch=4,model=2"));
    all.push_back(str(network, ":tensor:batch=2,model=4"));
  }
  for (const char* more :
       {"cnn:spatial:batch=2,height=4", "imdb:imdb/model:batch=4,model=2",
        "imdb:imdb/spatial:batch=2,feature=2,model=2", "gpt:gpt/data:batch=8",
        "gpt:gpt/fsdp:batch=8", "gpt:gpt/zero1:batch=8", "gpt:gpt/zero2:batch=8",
        "gpt:gpt/hsdp:replica=2,batch=4", "gpt:gpt/tensor:batch=2,model=4",
        "gpt:gpt/tensor_fsdp:batch=2,fsdp=2,model=2", "gpt:gpt/experts:batch=2,expert=4",
        "gpt:gpt/experts_tensor:batch=2,expert=2,model=2"}) {
    all.push_back(more);
  }
  return all;
}

constexpr std::array counts = {1, 2, 3, 4, 8};

/// Returns the mesh of a training, "NETWORK:LAYOUTS:MESH:OPTIONS".
MeshDims mesh_of(const std::string& training) {
  const size_t begin = training.find(':', training.find(':') + 1) + 1;
  return parse_mesh_dims(training.substr(begin, training.find(':', begin) - begin));
}

/// Returns the trainings whose meshes so many processes can share: not three those of 2 x 2 x 2.
Texts for_processes(int count, Texts all) {
  std::erase_if(all,
                [&](const std::string& training) { return !can_host(mesh_of(training), count); });
  return all;
}

}  // namespace

TEST_CASE("twelve trainings drawn by a seed have the bits of one process") {
  const uint64_t seed = seed_of_run();
  INFO("TESSERA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  Texts drawn = trainings();
  std::shuffle(drawn.begin(), drawn.end(), random);
  drawn.resize(12);
  for (std::string& training : drawn) {
    constexpr std::array options = {"", "clip", "accumulate", "clip,accumulate"};
    training += str(":", options[random() % options.size()]);
  }
  const std::vector<Outcome> expected = run({}, drawn)[0];
  size_t compared = 0;
  for (size_t c = 0; c < counts.size(); ++c) {
    const Start start = {counts[c], random() % 2 ? "2" : "1", random() % 2 == 0};
    Texts here;
    std::vector<std::string> bits;
    for (size_t t = 0; t < drawn.size(); ++t) {
      // Three processes cannot share each mesh, four can.
      const bool fits = can_host(mesh_of(drawn[t]), counts[t % counts.size()]);
      if ((t + (fits ? 0 : 1)) % counts.size() != c) continue;
      here.push_back(drawn[t] + (random() % 2 ? ",eager" : ""));
      bits.push_back(expected[t].bits);
    }
    for (const std::vector<Outcome>& rank : run(start, here)) {
      for (size_t t = 0; t < here.size(); ++t) {
        CAPTURE(here[t], start.count, start.threads, start.shared_memory);
        CHECK(rank[t].bits == bits[t]);
        CHECK(rank[t].steps == 8);
      }
    }
    compared += here.size();
  }
  CHECK(compared == 12);
}

TEST_CASE("every training has the same bits in 50 steps in every way", "[nightly]") {
  Texts all = trainings();
  // The daily draws combine all options with all trainings.
  constexpr std::array options = {":clip", ":accumulate", ":clip,accumulate"};
  for (size_t t = 0; t < all.size(); ++t) all[t] += options[t % options.size()];
  std::map<std::string, std::string> expected;
  Start start{.batches = 25};
  const std::vector<Outcome> one = run(start, all)[0];
  for (size_t t = 0; t < all.size(); ++t) expected[all[t]] = one[t].bits;
  for (const int count : counts) {
    const Texts here = for_processes(count, all);
    for (const auto& [threads, shared_memory, way] :
         std::vector<std::tuple<std::string, bool, std::string>>{{"1", true, ""},
                                                                 {"1", true, ",eager"},
                                                                 {"1", false, ""},
                                                                 {"1", false, ",eager"},
                                                                 {"2", true, ""},
                                                                 {"2", true, ",eager"},
                                                                 {"2", false, ""},
                                                                 {"2", false, ",eager"}}) {
      if (count == 1 && !shared_memory) continue;  // one process sends nothing
      start = {count, threads, shared_memory, 25};
      Texts in_this_way = here;
      for (std::string& training : in_this_way) training += way;
      for (const std::vector<Outcome>& rank : run(start, in_this_way)) {
        for (size_t t = 0; t < here.size(); ++t) {
          CAPTURE(in_this_way[t], count, threads, shared_memory);
          CHECK(rank[t].bits == expected.at(here[t]));
          CHECK(rank[t].steps == 50);
        }
      }
    }
  }
}

TEST_CASE("without world_size_invariant, 1 and 3 processes differ in their bits") {
  const Texts training = {"mlp:data:batch=8:default"};
  CHECK(run({}, training)[0][0].bits != run({.count = 3}, training)[0][0].bits);
}

TEST_CASE("a kernel has one thread for each block, and one that takes more changes bits") {
  const Texts both = {"parts:data:batch=8", "fixed:data:batch=8"};
  const std::vector<Outcome> one = run({}, both)[0], two = run({.threads = "2"}, both)[0];
  CHECK(two[0].bits == one[0].bits);
  CHECK(two[1].bits != one[1].bits);
}

TEST_CASE(
    "data parallelism and fully sharded weights with as many shards of rows have equal bits") {
  Texts all;
  for (const std::string network : {"mlp", "cnn", "text", "imdb", "gpt"}) {
    for (const char* layouts :
         {"data:batch=8", "fsdp:batch=8", "zero2:batch=8", "hsdp:replica=2,batch=4"}) {
      all.push_back(str(network, network == "gpt" ? ":gpt/" : ":", layouts));
    }
  }
  const std::vector<Outcome> outcomes = run({}, all)[0];
  for (size_t t = 0; t < all.size(); ++t) {
    CAPTURE(all[t]);
    CHECK(outcomes[t].bits == outcomes[t / 4 * 4].bits);
  }
}

TEST_CASE("each process multiplies and receives the share of its devices") {
  // Nothing is uneven: batches of 24 rows, 4 heads, 24 hidden units.
  const Texts both = {"mlp:data:batch=8", "gpt:gpt/tensor:batch=2,model=4"};
  Start start{.even = true};
  const std::vector<Outcome> one = run(start, both)[0];
  for (const int count : {2, 3, 4, 8}) {
    start.count = count;
    const std::vector<std::vector<Outcome>> ranks = run(start, both);
    for (size_t t = 0; t < both.size(); ++t) {
      CAPTURE(both[t], count);
      REQUIRE(one[t].flops > 1e6);
      const auto hosting = default_hosting(mesh_of(both[t]), count);
      double all = 0;
      for (int rank = 0; rank < count; ++rank) {
        const Outcome& own = ranks[static_cast<size_t>(rank)][t];
        all += own.flops;
        const double share = double(hosting->devices_of(rank).size()) / 8;
        CHECK(own.flops == share * one[t].flops);
        CHECK(own.received == one[t].received);
      }
      CHECK(all == one[t].flops);
    }
  }
}

}  // namespace world_size_test
