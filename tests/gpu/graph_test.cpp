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

/// A piece of work: a batch is brought, multiplied, rectified, dropped in part, and added up.
struct Work {
  at::Tensor input = at::empty({6, 5}).pin_memory();
  at::Tensor x = at::zeros({6, 5}).to(gpu(0).device);
  at::Tensor kernel = whole_numbers({5, 4}, 1).to(gpu(0).device);
  at::Tensor bias = whole_numbers({4}, 2).to(gpu(0).device);
  at::Tensor total = at::zeros({4}).to(gpu(0).device);
  at::Tensor y = {};

  void run() {
    x.copy_(input, /*non_blocking=*/true);
    const Shape shape = {6, 4};
    const std::array<Interval, 2> whole = {{{0, 6}, {0, 4}}};
    y = dropout_on_gpu(at::addmm(bias, x, kernel).relu(), {Seed{1, 2}, shape, whole}, 0.5, 2);
    total.add_(y.sum(0));
  }
};

}  // namespace

TEST_CASE("recorded work of a GPU, replayed on new numbers, is the same as done anew") {
  const c10::InferenceMode inference;
  // Not the default one.
  const c10::Stream stream = gpu(0).communication;
  const c10::StreamGuard guard(stream);
  Work anew, recorded;
  {
    Work first;
    first.run();
    stream.synchronize();
  }
  recorded.input.fill_(1000);
  const std::unique_ptr<GpuGraph> graph = capture_graph(stream);
  recorded.run();
  graph->end();
  const void* const place = recorded.y.const_data_ptr();
  CHECK(difference(recorded.total.cpu(), at::zeros({4}), 0, 0) == "");
  for (int64_t seed = 3; seed < 6; ++seed) {
    CAPTURE(seed);
    anew.input.copy_(whole_numbers({6, 5}, seed));
    recorded.input.copy_(anew.input);
    anew.run();
    graph->replay(stream);
    CHECK(difference(recorded.y.cpu(), anew.y.cpu(), 0, 0) == "");
    CHECK(difference(recorded.total.cpu(), anew.total.cpu(), 0, 0) == "");
    CHECK(recorded.y.const_data_ptr() == place);
  }
  CHECK(recorded.total.cpu().count_nonzero().item<int64_t>() > 0);
}

}  // namespace graph_test
