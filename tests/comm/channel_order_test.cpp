#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>

#include <ATen/ATen.h>

#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/thread_communicator.hpp"

namespace channel_order_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("engine: pending collectives complete in any order of waits, and without waits") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_engines(make, 2, [](int rank, const auto& engine) {
      const Group group = group_of({0, 1}, rank);
      std::vector<at::Tensor> outs(12);
      std::vector<WorkPtr> works;
      for (size_t i = 0; i < outs.size(); ++i) {
        const int64_t count = i % 3 == 0 ? 600001 : 17;
        works.push_back(
            engine->all_reduce(group, Reduce::sum, {at::full({count}, double(i))}, outs[i]));
      }
      if (rank == 0) {
        for (size_t i = works.size(); i-- > 0;) wait(works[i]);
      } else {
        while (!works.back()->done()) std::this_thread::yield();
      }
      for (size_t i = 0; i < outs.size(); ++i) {
        wait(works[i]);
        expect(works[i]->done() && at::all(outs[i] == 2.0 * double(i)).template item<bool>(),
               str("result ", i));
      }
      // No one waits for the last collective.
      engine->all_reduce(group, Reduce::sum, {at::ones({3})}, outs[0]);
      meet(*engine);
    }));
  }
}

TEST_CASE("engine: groups of some ranks do not wait for the other ranks") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_engines(make, 4, [](int rank, const auto& engine) {
      const int row = rank / 2 * 2;
      // The ranks of the second row make more calls.
      for (int i = 0; i < 1 + rank / 2 * 5; ++i) {
        at::Tensor out;
        wait(engine->all_reduce(group_of({row, row + 1}, rank), Reduce::sum, {at::full({9}, rank)},
                                out));
        expect(out[0].template item<float>() == 2 * row + 1, "row");
      }
      at::Tensor out;
      const int column = rank % 2;
      wait(engine->all_reduce(group_of({column, column + 2}, rank), Reduce::sum,
                              {at::full({50000}, rank)}, out));
      expect(out[0].template item<float>() == 2 * column + 2, "column");
    }));
  }
}

TEST_CASE("engine: a local group stays in its process") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    CHECK_NOTHROW(run_engines(make, 2, [](int rank, const auto& engine) {
      if (rank == 1) return;
      at::Tensor out;
      wait(engine->all_reduce(group_of({0, 0}, 0), Reduce::sum, {at::ones({2}), at::ones({2})},
                              out));
      expect(at::all(out == 2).template item<bool>(), "sum");
    }));
  }
}

}  // namespace channel_order_test
