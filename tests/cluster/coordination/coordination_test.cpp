#include <tessera/framework/cluster/coordination/coordination.hpp>

#include <unistd.h>

#include <tessera/framework/base/error.hpp>

#include "tests/cluster/coordination/coordination_ranks.hpp"
#include "tests/support/catch.hpp"

namespace coordination_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using test::join_all;
using test::leave_all;
using test::on_threads;

namespace {

CallRecord call(uint64_t number, const std::string& text) {
  return {number, std::hash<std::string>()(text), -1, text, false};
}

}  // namespace

TEST_CASE("processes join and know each other") {
  auto ranks = join_all(3);
  for (int rank = 0; rank < 3; ++rank) {
    const Coordination& coordination = *ranks[static_cast<size_t>(rank)];
    CHECK(coordination.rank() == rank);
    CHECK(coordination.size() == 3);
    REQUIRE(coordination.peers().size() == 3);
    for (int other = 0; other < 3; ++other) {
      const Peer& peer = coordination.peers()[static_cast<size_t>(other)];
      CHECK(peer.rank == other);
      CHECK(peer.pid == ::getpid());
      CHECK(peer.address == "127.0.0.1");
      CHECK_THAT(peer.describe(), Contains(str("rank ", other, " (pid ", ::getpid(), " on ")));
    }
  }
  leave_all(ranks);
}

TEST_CASE("a single process joins its own run") {
  const auto coordination = Coordination::join({.say = {}});
  CHECK(coordination->gather("key", "text") == std::vector<std::string>{"text"});
  coordination->check(call(1, "all_reduce"));
  CHECK(coordination->reason() == "");
}

TEST_CASE("gather gives every rank the texts of all") {
  auto ranks = join_all(4);
  const std::string large(3 << 20, 'x');
  const auto errors = on_threads(4, [&](int rank) {
    Coordination& coordination = *ranks[static_cast<size_t>(rank)];
    for (int round = 0; round < 20; ++round) {
      const auto texts = coordination.gather("key", str(rank, " in ", round));
      std::vector<std::string> expected;
      for (int other = 0; other < 4; ++other) expected.push_back(str(other, " in ", round));
      if (texts != expected) throw CommError("wrong texts");
    }
    const auto texts = coordination.gather("large", rank == 2 ? large : "");
    if (texts[2] != large || !texts[1].empty()) throw CommError("wrong large texts");
  });
  CHECK(errors == std::vector<std::string>(4));
  leave_all(ranks);
}

TEST_CASE("threads of a rank gather concurrently") {
  auto ranks = join_all(2);
  const auto errors = on_threads(6, [&](int thread) {
    Coordination& coordination = *ranks[static_cast<size_t>(thread % 2)];
    const std::string key = str("key ", thread / 2);
    for (int round = 0; round < 100; ++round) {
      const auto texts = coordination.gather(key, str(key, round));
      if (texts != std::vector<std::string>(2, str(key, round))) throw CommError("wrong texts");
    }
  });
  CHECK(errors == std::vector<std::string>(6));
  leave_all(ranks);
}

TEST_CASE("equal calls pass a check") {
  auto ranks = join_all(3);
  const auto errors = on_threads(3, [&](int rank) {
    for (uint64_t number = 0; number < 200; ++number) {
      ranks[static_cast<size_t>(rank)]->check(call(number, "all_reduce of w on batch"));
    }
  });
  CHECK(errors == std::vector<std::string>(3));
  leave_all(ranks);
}

TEST_CASE("differing calls end the run on all ranks with both texts") {
  auto ranks = join_all(3);
  std::vector<std::string> ends(3);
  for (size_t rank = 0; rank < 3; ++rank) {
    ranks[rank]->set_on_end([&, rank](const std::string& reason) { ends[rank] += reason; });
  }
  const auto errors = on_threads(3, [&](int rank) {
    const std::string text =
        rank == 2 ? "all_gather of logits on model" : "all_reduce of w on batch";
    ranks[static_cast<size_t>(rank)]->check(call(118, text));
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, Contains("[coordination] every rank makes the same calls in the same order. "
                               "Received: call #118 of rank "));
    CHECK_THAT(error, Contains("all_gather of logits on model"));
    CHECK_THAT(error, Contains("all_reduce of w on batch"));
    CHECK(error == errors[0]);
  }
  for (const auto& rank : ranks) CHECK(rank->reason(5s) == errors[0]);
  leave_all(ranks);
  CHECK(ends == errors);
}

TEST_CASE("abort ends the run on all ranks") {
  auto ranks = join_all(3);
  const auto errors = on_threads(3, [&](int rank) {
    Coordination& coordination = *ranks[static_cast<size_t>(rank)];
    if (rank == 1) coordination.abort("[test] a reason");
    coordination.gather("never", "");
  });
  CHECK(errors == std::vector<std::string>(3, "[test] a reason"));
  leave_all(ranks);
}

TEST_CASE("repeated starts and ends neither hang nor fail") {
  for (int round = 0; round < 100; ++round) {
    auto ranks = join_all(4);
    std::vector<std::string> reasons(4);
    const auto errors = on_threads(4, [&](int rank) {
      auto& coordination = ranks[static_cast<size_t>(rank)];
      coordination->gather("key", "");
      coordination->leave();
      reasons[static_cast<size_t>(rank)] = coordination->reason();
      coordination.reset();
    });
    REQUIRE(errors == std::vector<std::string>(4));
    REQUIRE(reasons == std::vector<std::string>(4));
  }
}

}  // namespace coordination_test
