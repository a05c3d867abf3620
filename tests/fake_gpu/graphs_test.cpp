#include <functional>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>

#include <tessera/framework/base/error.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/gpu/nccl_rank.hpp"
#include "tests/support/catch.hpp"

/// Tests captured work, and work that cannot be captured.
namespace graphs_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

c10::Stream recording() { return gpu(0).communication; }
c10::Stream other() { return gpu(0).upload; }

at::Tensor full(double value) { return at::full({3}, value, x_options()); }

using Graph = std::unique_ptr<GpuGraph>;

/// Captures `work` on the recording stream.
Graph recorded(const std::function<void()>& work) {
  const c10::StreamGuard guard(recording());
  Graph graph = capture_graph(recording());
  work();
  graph->end();
  return graph;
}

void on(const c10::Stream& stream, const std::function<void()>& work) {
  const c10::StreamGuard guard(stream);
  work();
}

}  // namespace

TEST_CASE("a replay is one launch, which runs as late as other work of its stream") {
  const c10::InferenceMode inference;
  const at::Tensor x = full(1);
  const fake_gpu::Counters counts = counted([&] {
    const Graph graph = recorded([&] { x.add_(1).mul_(2); });
    CHECK(x.cpu().equal(at::full({3}, 1)));
    graph->replay(recording());
    graph->replay(recording());
  });
  CHECK(counts.kernels == 0);
  CHECK(counts.graphs == 2);
  CHECK(counts.waits == 1);
  // The graph lives until its replays are done.
  CHECK(x.cpu().equal(at::full({3}, 1)));
  order(recording(), gpu(0).compute());
  CHECK(x.cpu().equal(at::full({3}, 10)));
}

TEST_CASE("captured results of every kind have strides and storage before values") {
  const c10::InferenceMode inference;
  const at::Tensor x = at::arange(12, x_options()).view({3, 4});
  const at::Tensor ids = at::tensor({2, 0}).to(device(0));
  const at::Tensor host = at::scalar_tensor(5);
  std::vector<at::Tensor> all;
  at::Tensor grown = at::empty({0}, x_options());
  const auto work = [&] {
    const auto [values, indices] = x.topk(2);
    at::mul_out(grown, x, x);
    all = {values,
           indices,
           x.index_select(0, ids),
           x.add(host),
           grown,
           x.t().clone(),
           at::convolution(x.view({1, 1, 3, 4}), x.view({2, 1, 2, 3}), {}, {1, 1}, {0, 0}, {1, 1},
                           false, {0, 0}, 1)};
    for (const at::Tensor& sum : at::_foreach_add({x, ids}, 1)) all.push_back(sum);
  };
  work();
  std::vector<at::Tensor> expected;
  for (const at::Tensor& tensor : all) expected.push_back(tensor.cpu());
  grown = at::empty({0}, x_options());
  const Graph graph = recorded(work);
  host.fill_(7);  // CUDA has read the number at capture
  graph->replay(recording());
  order(recording(), gpu(0).compute());
  REQUIRE(all.size() == 9);
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(all[i].strides() == expected[i].strides());
    CHECK(all[i].cpu().equal(expected[i]));
  }
}

TEST_CASE("memory of a graph is reserved while it lives and released after it") {
  const c10::InferenceMode inference;
  const c10::StreamGuard guard(recording());
  const auto ask = [] { return at::empty({5000}, x_options()); };
  at::Tensor y;
  const void* inner = nullptr;
  Graph graph = recorded([&] {
    inner = ask().const_data_ptr();
    y = ask();
  });
  const void* const address = y.const_data_ptr();
  // Memory released during a capture is reused inside the graph.
  CHECK(address == inner);
  y.reset();
  const at::Tensor outside = ask();
  CHECK(outside.const_data_ptr() != address);
  graph->replay(recording());
  graph.reset();
  // The graph is still to run.
  CHECK(ask().const_data_ptr() != address);
  recording().synchronize();
  const at::Tensor after[] = {ask(), ask()};
  CHECK((after[0].const_data_ptr() == address || after[1].const_data_ptr() == address));
  // A tensor that outlives the graph releases its memory like others.
  graph = recorded([&] { y = ask(); });
  const void* const last = y.const_data_ptr();
  graph.reset();
  CHECK(ask().const_data_ptr() != last);
  y.reset();
  CHECK(ask().const_data_ptr() == last);
}

TEST_CASE("streams that wait for a capturing stream join the capture until they are waited for") {
  const c10::InferenceMode inference;
  const at::Tensor x = full(1), y = full(0);
  const auto fork = [&] {
    x.add_(1);
    order(recording(), other());
    on(other(), [&] { y.copy_(x); });
  };
  const Graph graph = recorded([&] {
    fork();
    order(other(), recording());
    y.mul_(3);
  });
  CHECK(y.cpu().equal(at::zeros({3})));
  graph->replay(recording());
  recording().synchronize();
  CHECK(y.cpu().equal(at::full({3}, 6)));
  CHECK_THROWS_WITH(recorded(fork), Contains("work of stream") && Contains("does not wait for"));
  // Both streams run work immediately again.
  on(other(), [&] { y.fill_(8); });
  CHECK(y.cpu().equal(at::full({3}, 8)));
}

TEST_CASE("work that CUDA cannot capture is refused and ends the capture") {
  const c10::InferenceMode inference;
  const at::Tensor x = full(1), there = at::ones({3}).to(device(1));
  const at::Tensor pageable = at::ones({3}), pinned = at::ones({3}).pin_memory();
  c10::Event before(c10::kPrivateUse1), elsewhere(c10::kPrivateUse1);
  before.record(recording());
  elsewhere.record(other());
  const auto event = [] {
    c10::Event now(c10::kPrivateUse1);
    now.record(recording());
    return now;
  };
  const std::vector<std::pair<std::string, std::function<void()>>> refused = {
      {"_local_scalar_dense", [&] { x[0].item<float>(); }},
      {"download", [&] { x.cpu(); }},
      {"pageable upload", [&] { x.copy_(pageable, true); }},
      {"blocking upload", [&] { x.copy_(pinned); }},
      {"aten::nonzero", [&] { x.nonzero(); }},
      {"synchronizeStream", [] { recording().synchronize(); }},
      {"synchronizeStream", [] { other().synchronize(); }},
      {"queryStream", [] { recording().query(); }},
      {"synchronizeEvent", [&] { elsewhere.synchronize(); }},
      {"queryEvent", [&] { elsewhere.query(); }},
      {"synchronizeEvent", [&] { event().synchronize(); }},
      {"not recorded", [&] { elsewhere.block(recording()); }},
      {"not recorded", [&] { before.block(recording()); }},
      {"copy between GPUs", [&] { x.copy_(there); }},
      {"the stream records", [] { capture_graph(recording()); }},
      {"the host waits", [] { capture_graph(other()); }},
  };
  for (const auto& [what, work] : refused) {
    CAPTURE(what);
    const c10::StreamGuard guard(recording());
    const Graph graph = capture_graph(recording());
    CHECK_THROWS_WITH(work(), Contains(what));
    CHECK_THROWS_WITH(graph->end(), Contains("[GpuGraph]") && Contains("Received: "));
    CHECK_THROWS_WITH(graph->replay(recording()), Contains("call end() first"));
    CHECK(x.add(1).cpu().equal(at::full({3}, 2)));
  }
  CHECK_THROWS_WITH(capture_graph(c10::Stream(c10::Stream::DEFAULT, device(0))),
                    Contains("a default stream"));
  // An event that outlives its capture.
  std::optional<c10::Event> late;
  const Graph graph = recorded([&] { late.emplace(event()); });
  CHECK_THROWS_WITH(late->block(other()), Contains("another recording"));
  CHECK_THROWS_WITH(late->query(), Contains("an event that was recorded"));
}

TEST_CASE("an abandoned capture leaves nothing") {
  const c10::InferenceMode inference;
  const c10::StreamGuard guard(recording());
  const at::Tensor x = full(1);
  {
    const Graph graph = capture_graph(recording());
    x.add_(1);
  }
  CHECK(x.add(1).cpu().equal(at::full({3}, 2)));
}

TEST_CASE("a graph reads pinned memory at each replay, so the memory must live") {
  const c10::InferenceMode inference;
  const at::Tensor x = full(0);
  std::optional<at::Tensor> source = at::ones({3}).pin_memory();
  const at::Tensor target = at::zeros({3}).pin_memory();
  Graph graph;
  const fake_gpu::Counters counts = counted([&] {
    graph = recorded([&] {
      x.copy_(*source, /*non_blocking=*/true);
      target.copy_(x.mul(2), /*non_blocking=*/true);
    });
  });
  CHECK(counts.uploads() + counts.downloads + counts.kernels == 0);
  source->fill_(4);
  graph->replay(recording());
  CHECK(target.equal(at::zeros({3})));
  recording().synchronize();
  CHECK(target.equal(at::full({3}, 8)));
  source.reset();
  CHECK_THROWS_WITH(graph->replay(recording()), Contains("lives as long as the graph"));
}

TEST_CASE("the imitated NCCL reports that it cannot be captured") {
  Rendezvous hub(1, std::chrono::minutes(1));
  const Rank rank(hub, 0);
  rank.meet();
  const c10::InferenceMode inference;
  const c10::StreamGuard guard(other());
  const at::Tensor x = full(1);
  const Graph graph = capture_graph(other());
  at::Tensor sum;
  CHECK_THROWS_WITH(rank.engine->all_reduce(rank.everyone(), Reduce::sum, {x}, sum),
                    Contains("[NCCL]") && Contains("the stream records"));
  CHECK_THROWS_WITH(graph->end(), Contains("NCCL: the stream records"));
}

}  // namespace graphs_test
