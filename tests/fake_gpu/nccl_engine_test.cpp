#include <functional>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>
#include <tessera/framework/comm/nccl/nccl_communicators.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/gpu/nccl_rank.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_nccl/fake_nccl.hpp"

namespace nccl_engine_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::chrono::milliseconds patience = std::chrono::seconds(30);

/// The error that a call ends in, on any thread; "no error" without one.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// What both ranks came to: the text of an error, or what `body` returns.
std::vector<std::string> both(const std::function<std::string(Rank&)>& body) {
  Rendezvous hub(2, patience);
  std::vector<std::string> said(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      const c10::InferenceMode inference;
      const std::string error = error_of([&] {
        Rank rank(hub, r);
        said[size_t(r)] = body(rank);
      });
      if (error != "no error") said[size_t(r)] = error;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

WorkPtr add(const Rank& rank, const at::Tensor& mine, at::Tensor& sum) {
  return rank.engine->all_reduce(rank.everyone(), Reduce::sum, {mine.to(rank.device)}, sum);
}

/// Waits until it is true.
bool comes(const std::function<bool()>& what) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// What a rank says that asks again and again whether its work is well.
std::string failure(const WorkPtr& work) {
  std::string said;
  comes([&] { return (said = error_of([&] { work->wait(); })) != "no error"; });
  return said;
}

}  // namespace

TEST_CASE("an abort ends the wait for ranks that do not come") {
  NcclCommunicators communicators;
  std::string said;
  std::thread joins([&] {
    const c10::DeviceGuard guard(device(0));
    said = error_of([&] { communicators.add(communicators.make_id(), 2, 0); });
  });
  CHECK(comes([] { return fake_nccl::alive() == 1; }));
  communicators.abort("rank 1 died");
  joins.join();
  CHECK(said == "[nccl] the communicator was aborted. Received: rank 1 died.");
  CHECK(fake_nccl::alive() == 0);
}

TEST_CASE("an abort ends a collective in which a rank is missing, and the wait for its result") {
  at::Tensor sum;
  const std::vector<std::string> said = both([&](Rank& rank) -> std::string {
    if (rank.rank == 1) return "";
    const WorkPtr work = add(rank, at::ones({3}), sum);
    work->wait();
    const int64_t before = fake_gpu::counters().waits;
    std::thread control([&] {
      comes([&] { return fake_gpu::counters().waits > before; });
      rank.engine->abort("rank 1 died");
    });
    sum.cpu();
    control.join();
    return error_of([&] { rank.meet(); });
  });
  CHECK(said[0] == "[nccl] the communicator was aborted. Received: rank 1 died.");
  CHECK(said[1] == "");
}

TEST_CASE("an error that NCCL meets in the background is told in one line") {
  Rank* ranks[2] = {};
  fake_nccl::fail_at(1, 1);
  const std::vector<std::string> said = both([&](Rank& rank) -> std::string {
    ranks[rank.rank] = &rank;
    rank.meet();
    at::Tensor sum;
    const WorkPtr work = add(rank, at::ones({3}), sum);
    if (rank.rank == 0) return failure(work);
    const std::string error = failure(work);
    // As the control plane does.
    ranks[0]->engine->abort("rank 1: " + error);
    return error;
  });
  fake_nccl::fail_at(-1, -1);
  const std::string line =
      "[nccl] NCCL calls succeed. Received: remote process exited or there was "
      "a network error, planted by a test. To fix: set NCCL_DEBUG=WARN to see more.";
  CHECK(said[1] == line);
  CHECK_THAT(said[0], Contains("the communicator was aborted. Received: rank 1: " + line));
}

TEST_CASE("ranks that ask NCCL for different things are told what") {
  const std::vector<std::string> said = both([&](Rank& rank) -> std::string {
    at::Tensor sum;
    return failure(add(rank, at::ones({rank.rank + 2}), sum));
  });
  CHECK_THAT(said[0], Contains("invalid usage, rank 1 is at ncclAllReduce of 3 Float, sum, rank 0 "
                               "at ncclAllReduce of 2 Float"));
  CHECK_THAT(said[1], Contains("invalid usage, rank 0 is at ncclAllReduce of 2 Float, sum, rank 1 "
                               "at ncclAllReduce of 3 Float"));
}

TEST_CASE("collectives begin after what was computed, and end before what needs them") {
  const std::vector<std::string> said = both([&](Rank& rank) -> std::string {
    at::Tensor x = at::zeros({3}, at::TensorOptions(rank.device));
    x.copy_(at::full({3}, rank.rank + 1.F).pin_memory(), /*non_blocking=*/true);
    std::string wrong;
    for (int i = 0; i < 20; ++i) {
      at::Tensor sum;
      const WorkPtr work = rank.engine->all_reduce(rank.everyone(), Reduce::sum, {x}, sum);
      // Its memory goes to others at once, who overwrite it.
      x.reset();
      at::full({3}, -1.F, at::TensorOptions(rank.device));
      work->wait();
      x = sum.div(2);
    }
    return str(x.cpu()[0].item<float>());
  });
  CHECK(said == std::vector<std::string>{"1.5", "1.5"});
}

TEST_CASE("GPUs of one process are reduced by NCCL") {
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
