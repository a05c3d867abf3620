#include <tessera/framework/base/error.hpp>

#include <functional>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "tests/gpu/nccl_rank.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"

namespace collectives_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Runs `body` on 1, 2, … ranks, up to the number of GPUs; it returns an error text or "".
void check_ranks(const std::function<std::string(Rank&)>& body) {
  for (int size = 1; size <= gpu_count(); ++size) {
    Rendezvous hub(size, std::chrono::minutes(1));
    std::vector<std::string> wrong(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        const c10::InferenceMode inference;
        try {
          Rank rank(hub, r);
          wrong[size_t(r)] = body(rank);
          rank.meet();
        } catch (const std::exception& e) {
          wrong[size_t(r)] = e.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int r = 0; r < size; ++r) {
      INFO("rank " << r << " of " << size);
      CHECK(wrong[size_t(r)] == "");
    }
  }
}

at::Tensor numbers(const Shape& shape, int64_t seed, at::ScalarType dtype = at::kFloat) {
  const at::Tensor values = small_integers(shape, seed);
  if (dtype == at::kBool) return values.gt(0);
  return (dtype == at::kByte ? values.abs() : values).to(dtype);
}

std::string unlike(const at::Tensor& actual, const at::Tensor& expected) {
  return difference(actual.cpu(), expected, 0, 0);
}

}  // namespace

TEST_CASE("NCCL reduces every dtype, wherever the partial sums are stored") {
  check_ranks([](Rank& r) -> std::string {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar,
                                       at::kByte, at::kShort, at::kInt, at::kLong, at::kBool}) {
      for (const Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
        for (const bool on_host : {false, true}) {
          std::vector<at::Tensor> all;
          for (int i = 0; i < r.size; ++i) all.push_back(numbers({3, 5}, i, dtype));
          const at::Tensor mine = all[size_t(r.rank)];
          at::Tensor out;
          wait(r.engine->all_reduce(r.everyone(), kind, {on_host ? mine : mine.to(r.device)}, out));
          if (out.is_cpu() != on_host) return "the result is on another device";
          const std::string wrong = unlike(out, reduce_all(kind, all));
          if (!wrong.empty()) return str(c10::toString(dtype), " ", to_string(kind), ": ", wrong);
        }
      }
    }
    return "";
  });
}

TEST_CASE("NCCL gathers and scatters uneven blocks, also several per rank") {
  check_ranks([](Rank& r) -> std::string {
    for (const int64_t axis : {0, 1}) {
      const Group group = r.everyone(2);
      std::vector<int64_t> counts;
      std::vector<at::Tensor> all, mine;
      for (int64_t m = 0; m < group.size(); ++m) {
        counts.push_back(m * 2 % 5);
        all.push_back(numbers(axis == 0 ? Shape{counts.back(), 3} : Shape{3, counts.back()}, m));
      }
      for (int64_t m : group.local) mine.push_back(all[size_t(m)].to(r.device));
      std::vector<at::Tensor> ones, local_ones;
      for (int64_t m = 0; m < group.size(); ++m) ones.push_back(numbers({2}, m));
      for (int64_t m : group.local) local_ones.push_back(ones[size_t(m)].to(r.device));
      GatheredValue joined[] = {
          {axis, counts, mine},
          {0, std::vector<int64_t>(size_t(group.size()), 2), local_ones},
      };
      wait(r.engine->all_gather(group, joined));
      std::string wrong = unlike(joined[0].out, at::cat(all, axis));
      if (wrong.empty()) wrong = unlike(joined[1].out, at::cat(ones, 0));
      if (!wrong.empty()) return "all_gather: " + wrong;

      std::vector<Interval> pieces;
      for (int64_t m = 0; m < group.size(); ++m) {
        pieces.push_back(shard_interval(7, group.size(), m));
      }
      std::vector<at::Tensor> addends;
      for (int i = 0; i < r.size; ++i) addends.push_back(numbers({7, 7}, i));
      const at::Tensor total = reduce_all(Reduce::sum, addends);
      const at::Tensor addend = addends[size_t(r.rank)].to(r.device);
      ScatteredValue scattered[] = {{axis, pieces, {addend}}, {1 - axis, pieces, {addend}}};
      wait(r.engine->reduce_scatter(group, Reduce::sum, scattered));
      for (const ScatteredValue& value : scattered) {
        for (size_t i = 0; i < group.local.size(); ++i) {
          const Interval piece = pieces[size_t(group.local[i])];
          wrong = unlike(value.out[i], total.narrow(value.axis, piece.lo, piece.size()));
          if (!wrong.empty()) return "reduce_scatter: " + wrong;
        }
      }
    }
    return "";
  });
}

TEST_CASE("NCCL sends from every member to every member") {
  check_ranks([](Rank& r) -> std::string {
    const Group group = r.everyone(2);
    const auto letter = [](int64_t from, int64_t to) {
      return numbers({from % 3, to + 1}, from * 100 + to);
    };
    std::vector<std::vector<at::Tensor>> send, recv;
    for (int64_t me : group.local) {
      send.emplace_back();
      recv.emplace_back();
      for (int64_t m = 0; m < group.size(); ++m) {
        const bool here = group.owner[size_t(m)] == r.rank;
        send.back().push_back(letter(me, m).to(r.device));
        recv.back().push_back(here ? at::Tensor() : at::empty_like(letter(m, me), r.device));
      }
    }
    wait(r.engine->all_to_all(group, send, recv));
    for (size_t i = 0; i < recv.size(); ++i) {
      for (int64_t m = 0; m < group.size(); ++m) {
        const std::string wrong = unlike(recv[i][size_t(m)], letter(m, group.local[i]));
        if (!wrong.empty()) return "all_to_all: " + wrong;
      }
    }
    return "";
  });
}

TEST_CASE("NCCL serves groups of some ranks, each with its own communicator") {
  check_ranks([](Rank& r) -> std::string {
    if (r.size < 2) return "";
    // One group of the first and the last rank, one of those between.
    const bool outer = r.rank == 0 || r.rank == r.size - 1;
    Group group;
    int64_t expected = 0;
    for (int i = 0; i < r.size; ++i) {
      if ((i == 0 || i == r.size - 1) != outer) continue;
      if (i == r.rank) group.local = {group.size()};
      group.owner.push_back(i);
      expected += i + 1;
    }
    for (int repeat = 0; repeat < 3; ++repeat) {
      at::Tensor out;
      const at::Tensor mine = at::full({2}, r.rank + 1, at::kLong).to(r.device);
      wait(r.engine->all_reduce(group, Reduce::sum, {mine}, out));
      const std::string wrong = unlike(out, at::full({2}, expected, at::kLong));
      if (!wrong.empty()) return wrong;
    }
    return "";
  });
}

TEST_CASE("an aborted NCCL engine says why") {
  Rendezvous hub(1, std::chrono::minutes(1));
  Rank r(hub, 0);
  const c10::InferenceMode inference;
  at::Tensor out;
  const WorkPtr work =
      r.engine->all_reduce(r.everyone(), Reduce::sum, {at::ones({4}).to(r.device)}, out);
  r.engine->abort("rank 3 died");
  r.engine->abort("a later reason");
  CHECK_THROWS_WITH(work->wait(), Catch::Matchers::Contains("rank 3 died"));
  CHECK_THROWS_WITH(r.meet(), Catch::Matchers::Contains("rank 3 died"));
}

}  // namespace collectives_test
