#include <cmath>
#include <functional>
#include <span>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>
#include <tessera/framework/comm/nccl/nccl_communicators.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/gpu/nccl_rank.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_nccl/fake_nccl.hpp"
#include "tests/support/local_group.hpp"

namespace nccl_engine_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::chrono::milliseconds patience = std::chrono::seconds(30);

/// Returns the error text of a call on any thread, or "no error".
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// Runs `body` on two ranks; returns each rank's error text, or what `body` returns.
std::vector<std::string> both(const std::function<std::string(Rank&)>& body) {
  Rendezvous hub(2, patience);
  std::vector<std::string> results(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      const c10::InferenceMode inference;
      const std::string error = error_of([&] {
        Rank rank(hub, r);
        results[size_t(r)] = body(rank);
      });
      if (error != "no error") results[size_t(r)] = error;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

WorkPtr add(const Rank& rank, const at::Tensor& mine, at::Tensor& sum) {
  return rank.engine->all_reduce(rank.everyone(), Reduce::sum, {mine.to(rank.device)}, sum);
}

/// Waits until `what` is true; returns false after a timeout.
bool eventually(const std::function<bool()>& what) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Polls work until it fails and returns the error text.
std::string failure(const WorkPtr& work) {
  std::string error;
  eventually([&] { return (error = error_of([&] { work->wait(); })) != "no error"; });
  return error;
}

}  // namespace

TEST_CASE("an abort ends the wait for missing ranks") {
  NcclCommunicators communicators;
  std::string error;
  std::thread joins([&] {
    const c10::DeviceGuard guard(device(0));
    error = error_of([&] { communicators.add(communicators.make_id(), 2, 0); });
  });
  CHECK(eventually([] { return fake_nccl::alive() == 1; }));
  communicators.abort("rank 1 died");
  joins.join();
  CHECK(error == "[nccl] the communicator was aborted. Received: rank 1 died.");
  CHECK(fake_nccl::alive() == 0);
}

TEST_CASE("an abort ends a collective with a missing rank, and the wait for its result") {
  at::Tensor sum;
  const std::vector<std::string> results = both([&](Rank& rank) -> std::string {
    if (rank.rank == 1) return "";
    const WorkPtr work = add(rank, at::ones({3}), sum);
    work->wait();
    const int64_t before = fake_gpu::counters().waits;
    std::thread controller([&] {
      eventually([&] { return fake_gpu::counters().waits > before; });
      rank.engine->abort("rank 1 died");
    });
    sum.cpu();
    controller.join();
    return error_of([&] { rank.meet(); });
  });
  CHECK(results[0] == "[nccl] the communicator was aborted. Received: rank 1 died.");
  CHECK(results[1] == "");
}

TEST_CASE("in tree order, reductions have the bits of one process") {
  const auto leaf = [](int64_t member) {
    const at::Tensor values = at::sin(at::arange(35, at::kFloat) * (double(member) + 1.7));
    return values.mul(std::pow(9.0, member)).view({7, 5});
  };
  const std::vector<std::string> results = both([&](Rank& rank) -> std::string {
    Group group = rank.everyone(3), one = local_group(group.size());
    group.tree = one.tree = true;
    std::vector<at::Tensor> all, mine;
    std::vector<Interval> parts;
    for (int64_t m = 0; m < group.size(); ++m) {
      all.push_back(m == 2 ? at::Tensor() : leaf(m));
      parts.push_back(shard_interval(7, group.size(), m));
    }
    for (int64_t m : group.local) {
      const at::Tensor& input = all[size_t(m)];
      mine.push_back(input.defined() ? input.to(rank.device) : input);
    }
    const at::Tensor expected = reduce_inputs(one, Reduce::sum, all);
    at::Tensor out;
    wait(rank.engine->all_reduce(group, Reduce::sum, mine, out));
    if (!at::equal(out.cpu(), expected)) return "all_reduce";
    ScatteredValue value{0, parts, mine};
    wait(rank.engine->reduce_scatter(group, Reduce::sum, std::span(&value, 1)));
    for (size_t i = 0; i < group.local.size(); ++i) {
      const Interval part = parts[size_t(group.local[i])];
      if (!at::equal(value.out[i].cpu(), expected.narrow(0, part.lo, part.size()))) {
        return str("part ", i);
      }
    }
    return "";
  });
  CHECK(results == std::vector<std::string>{"", ""});
}

TEST_CASE("an asynchronous error of NCCL is reported in one line") {
  Rank* ranks[2] = {};
  fake_nccl::fail_at(1, 1);
  const std::vector<std::string> results = both([&](Rank& rank) -> std::string {
    ranks[rank.rank] = &rank;
    rank.meet();
    at::Tensor sum;
    const WorkPtr work = add(rank, at::ones({3}), sum);
    if (rank.rank == 0) return failure(work);
    const std::string error = failure(work);
    // Aborts as the coordination does.
    ranks[0]->engine->abort("rank 1: " + error);
    return error;
  });
  fake_nccl::fail_at(-1, -1);
  const std::string line =
      "[nccl] NCCL calls succeed. Received: remote process exited or there was "
      "a network error, planted by a test. To fix: set NCCL_DEBUG=WARN to see more.";
  CHECK(results[1] == line);
  CHECK_THAT(results[0], Contains("the communicator was aborted. Received: rank 1: " + line));
}

TEST_CASE("differing NCCL calls of ranks are reported on each") {
  const std::vector<std::string> results = both([&](Rank& rank) -> std::string {
    at::Tensor sum;
    return failure(add(rank, at::ones({rank.rank + 2}), sum));
  });
  CHECK_THAT(results[0],
             Contains("invalid usage, rank 1 is at ncclAllReduce of 3 Float, sum, rank 0 "
                      "at ncclAllReduce of 2 Float"));
  CHECK_THAT(results[1],
             Contains("invalid usage, rank 0 is at ncclAllReduce of 2 Float, sum, rank 1 "
                      "at ncclAllReduce of 3 Float"));
}

TEST_CASE("collectives start after their inputs are computed and end before their readers") {
  const std::vector<std::string> results = both([&](Rank& rank) -> std::string {
    at::Tensor x = at::zeros({3}, at::TensorOptions(rank.device));
    x.copy_(at::full({3}, rank.rank + 1.F).pin_memory(), /*non_blocking=*/true);
    std::string wrong;
    for (int i = 0; i < 20; ++i) {
      at::Tensor sum;
      const WorkPtr work = rank.engine->all_reduce(rank.everyone(), Reduce::sum, {x}, sum);
      // The memory of `x` is reused and overwritten at once.
      x.reset();
      at::full({3}, -1.F, at::TensorOptions(rank.device));
      work->wait();
      x = sum.div(2);
    }
    return str(x.cpu()[0].item<float>());
  });
  CHECK(results == std::vector<std::string>{"1.5", "1.5"});
}

TEST_CASE("GPUs of one process are all-reduced by NCCL") {
  const c10::InferenceMode inference;
  {
    const std::shared_ptr<DeviceReducer> reducer = make_nccl_devices();
    for (const float addend : {1.F, 3.F}) {
      const std::vector<at::Tensor> sums = reducer->all_reduce_each(
          Reduce::sum, {at::full({4}, addend).to(device(0)), at::full({4}, 2.F).to(device(1))});
      REQUIRE(sums.size() == 2);
      for (int i = 0; i < 2; ++i) {
        CHECK(sums[size_t(i)].device() == device(i));
        CHECK(sums[size_t(i)].cpu().equal(at::full({4}, addend + 2)));
      }
    }
    CHECK(fake_nccl::alive() == 2);
  }
  CHECK(fake_nccl::alive() == 0);
}

}  // namespace nccl_engine_test
