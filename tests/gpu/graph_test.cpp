#include <array>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/internal/gpu_draw.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"

namespace graph_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Work to capture: uploads a batch, multiplies it, applies relu and dropout, and sums it.
struct Work {
  at::Tensor input = at::empty({6, 5}).pin_memory();
  at::Tensor x = at::zeros({6, 5}).to(gpu(0).device);
  at::Tensor kernel = small_integers({5, 4}, 1).to(gpu(0).device);
  at::Tensor bias = small_integers({4}, 2).to(gpu(0).device);
  at::Tensor total = at::zeros({4}).to(gpu(0).device);
  at::Tensor y = {};

  void run() {
    x.copy_(input, /*non_blocking=*/true);
    const Shape shape = {6, 4};
    const std::array<Interval, 2> full_slice = {{{0, 6}, {0, 4}}};
    y = dropout_on_gpu(at::addmm(bias, x, kernel).relu(), {Seed{1, 2}, shape, full_slice}, 0.5, 2);
    total.add_(y.sum(0));
  }
};

}  // namespace

TEST_CASE("captured GPU work replayed on new numbers equals running it eagerly") {
  const c10::InferenceMode inference;
  // A stream other than the default one.
  const c10::Stream stream = gpu(0).communication;
  const c10::StreamGuard guard(stream);
  Work eager, recorded;
  {
    Work first;
    first.run();
    stream.synchronize();
  }
  recorded.input.fill_(1000);
  const std::unique_ptr<GpuGraph> graph = capture_graph(stream);
  recorded.run();
  graph->end();
  const void* const address = recorded.y.const_data_ptr();
  CHECK(difference(recorded.total.cpu(), at::zeros({4}), 0, 0) == "");
  for (int64_t seed = 3; seed < 6; ++seed) {
    CAPTURE(seed);
    eager.input.copy_(small_integers({6, 5}, seed));
    recorded.input.copy_(eager.input);
    eager.run();
    graph->replay(stream);
    CHECK(difference(recorded.y.cpu(), eager.y.cpu(), 0, 0) == "");
    CHECK(difference(recorded.total.cpu(), eager.total.cpu(), 0, 0) == "");
    CHECK(recorded.y.const_data_ptr() == address);
  }
  CHECK(recorded.total.cpu().count_nonzero().item<int64_t>() > 0);
}

}  // namespace graph_test
