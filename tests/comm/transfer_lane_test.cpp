#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/thread_communicator.hpp"

namespace transfer_lane_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

const Mesh mesh = create_mesh({{"stage", 4}});

/// Returns the messages' description.
CollectiveCall call_of(const Shape& shape) {
  return {.op = CommOp::transfer, .mesh = mesh, .dims = 1, .shape = shape};
}

at::Tensor numbers(int64_t elements, int64_t seed) {
  return at::arange(elements, at::kFloat).add_(static_cast<double>(seed));
}

WorkPtr send(Engine& engine, int to, const at::Tensor& tensor) {
  return engine.exchange(call_of(tensor.sizes().vec()), {{to, tensor}}, {});
}

/// Posts a receive.
WorkPtr receive(Engine& engine, int from, const at::Tensor& target) {
  return engine.exchange(call_of(target.sizes().vec()), {}, {{from, target}});
}

/// Larger than the memory that two ranks share.
constexpr int64_t large = int64_t{3} << 20;

}  // namespace

TEST_CASE("messages beside collectives arrive, small and large, in both directions at once") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_engines(make, 3, [](int rank, const std::shared_ptr<Engine>& engine) {
      for (int64_t elements : {int64_t{1}, int64_t{5000}, large}) {
        std::vector<Message> sends, recvs;
        for (int other = 0; other < 3; ++other) {
          if (other == rank) continue;
          sends.push_back({other, numbers(elements, 10 * rank + other)});
          recvs.push_back({other, at::empty({elements})});
        }
        const WorkPtr work = engine->exchange(call_of({elements}), sends, recvs);
        wait(work);
        expect(work->done(), "done");
        for (const Message& message : recvs) {
          expect(at::equal(message.tensor, numbers(elements, 10 * message.rank + rank)),
                 str("what rank ", message.rank, " sent"));
        }
      }
      meet(*engine);
    }));
  }
}

TEST_CASE("a message may have any strides, on either side") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_engines(make, 2, [](int rank, const std::shared_ptr<Engine>& engine) {
      const at::Tensor value = numbers(12, 0).view({3, 4});
      if (rank == 0) {
        send(*engine, 1, value.narrow(1, 1, 2));
      } else {
        const at::Tensor all = at::zeros({3, 4});
        const at::Tensor target = all.narrow(1, 0, 2);
        wait(receive(*engine, 0, target));
        expect(at::equal(target, value.narrow(1, 1, 2)), "the columns");
        expect(at::equal(all.narrow(1, 2, 2), at::zeros({3, 2})), "the others");
      }
      meet(*engine);
    }));
  }
}

TEST_CASE("a message passes a collective that waits, and a collective a message") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_engines(make, 2, [](int rank, const std::shared_ptr<Engine>& engine) {
      const Group both = group_of({0, 1}, rank);
      at::Tensor sum, out = at::empty({large});
      engine->set_call(1);
      if (rank == 0) {
        // The reduction is on its way before the message, which the other rank needs first.
        const WorkPtr reduced = engine->all_reduce(both, Reduce::sum, {at::ones({large})}, sum);
        send(*engine, 1, numbers(large, 7));
        wait(reduced);
        // This message is on its way before the reduction, and is read last.
        send(*engine, 1, numbers(large, 8));
        engine->set_call(2);
        wait(engine->all_reduce(both, Reduce::sum, {at::ones({large})}, sum));
      } else {
        wait(receive(*engine, 0, out));
        expect(at::equal(out, numbers(large, 7)), "the first message");
        wait(engine->all_reduce(both, Reduce::sum, {at::ones({large})}, sum));
        engine->set_call(2);
        wait(engine->all_reduce(both, Reduce::sum, {at::ones({large})}, sum));
        wait(receive(*engine, 0, out));
        expect(at::equal(out, numbers(large, 8)), "the second message");
      }
      expect(at::equal(sum, at::full({large}, 2.f)), "the sum");
      meet(*engine);
    }));
  }
}

namespace {

/// One action of a random program.
struct Action {
  bool collective = false;
  int from = 0, to = 0;    ///< of a message
  std::vector<int> ranks;  ///< of a collective
  int64_t elements = 1, seed = 0;
};

/// Returns a program that all ranks run in its order, each its own actions only.
std::vector<Action> random_program(std::mt19937& random, int ranks) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  std::vector<Action> program;
  for (int i = 0; i < 12; ++i) {
    Action action{.collective = below(2) == 0, .ranks = {}, .seed = i};
    action.elements = below(8) == 0 ? int64_t{1} << 18 : 1 + below(3000);
    action.from = below(ranks);
    action.to = (action.from + 1 + below(ranks - 1)) % ranks;
    for (int r = 0; r < ranks; ++r) {
      if (below(3) > 0) action.ranks.push_back(r);
    }
    if (action.ranks.size() < 2) action.ranks = {0, 1};
    program.push_back(std::move(action));
  }
  return program;
}

/// Runs a rank's actions. What it awaits is waited for at a random later time, in any order, but
/// reductions are, as between ranks that compute, begun in one order.
void run_program(const std::vector<Action>& program, Engine& engine, std::mt19937 random) {
  struct Awaited {
    WorkPtr work;
    std::shared_ptr<at::Tensor> result;
    at::Tensor expected;
  };
  std::vector<Awaited> awaited;
  const auto finish_one = [&] {
    const size_t i = random() % awaited.size();
    wait(awaited[i].work);
    expect(at::equal(*awaited[i].result, awaited[i].expected), "a result");
    awaited.erase(awaited.begin() + static_cast<int64_t>(i));
  };
  const int me = engine.rank();
  for (size_t n = 0; n < program.size(); ++n) {
    const Action& action = program[n];
    const at::Tensor value = numbers(action.elements, action.seed);
    auto result = std::make_shared<at::Tensor>();
    if (action.collective) {
      if (std::find(action.ranks.begin(), action.ranks.end(), me) == action.ranks.end()) continue;
      engine.set_call(n);
      const WorkPtr work =
          engine.all_reduce(group_of(action.ranks, me), Reduce::max, {value}, *result);
      awaited.push_back({work, result, value});
    } else if (action.from == me) {
      send(engine, action.to, value);
    } else if (action.to == me) {
      *result = at::empty({action.elements});
      awaited.push_back({receive(engine, action.from, *result), result, value});
    }
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    while (!awaited.empty() && random() % 3 == 0) finish_one();
  }
  while (!awaited.empty()) finish_one();
}

void run_programs(const MakeTransport& make, int programs, uint32_t seed) {
  run_engines(make, 4, [&](int rank, const std::shared_ptr<Engine>& engine) {
    std::mt19937 shared(seed), own(seed * 31 + static_cast<uint32_t>(rank));
    for (int i = 0; i < programs; ++i) {
      run_program(random_program(shared, 4), *engine, std::mt19937(own()));
    }
    meet(*engine);
  });
}

}  // namespace

TEST_CASE("random legal orders of messages and collectives end") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_programs(make, 20, 1));
  }
}

TEST_CASE("1,000 random legal orders of messages and collectives end", "[nightly]") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_programs(make, 250, 2));
  }
}

TEST_CASE("two ranks that transfer in different orders get an error that names both") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_THROWS_WITH(
        run_engines(make, 2,
                    [](int rank, const std::shared_ptr<Engine>& engine) {
                      if (rank == 1) {
                        send(*engine, 0, at::ones({4}));
                        send(*engine, 0, at::ones({2, 2}));
                        meet(*engine);
                      } else {
                        const WorkPtr second = receive(*engine, 1, at::empty({2, 2}));
                        const WorkPtr first = receive(*engine, 1, at::empty({4}));
                        wait(first);
                        wait(second);
                      }
                    }),
        Contains("#1 of float32 (2, 2) along stage") && Contains("#1 of float32 (4,) along stage"));
  }
}

TEST_CASE("an abort ends those who wait for a message") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    std::atomic<int> ended = 0;
    run_engines(make, 2, [&](int rank, const std::shared_ptr<Engine>& engine) {
      const WorkPtr work = receive(*engine, 1 - rank, at::empty({4}));
      std::thread aborts([&] {
        std::this_thread::sleep_for(50ms);
        engine->abort("the test says so");
      });
      try {
        wait(work);
      } catch (const CommError&) {
        ++ended;
      }
      aborts.join();
      try {
        send(*engine, 1 - rank, at::ones({1}));
      } catch (const CommError&) {
        ++ended;
      }
    });
    CHECK(ended == 4);
  }
}

}  // namespace transfer_lane_test
