#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

#include <ATen/ATen.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.hpp"

namespace execution_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("every block runs once, under InferenceMode, in order within its thread") {
  for (bool parallel : {false, true}) {
    std::vector<int> runs(100);
    std::vector<std::thread::id> threads(100);
    std::atomic<int> without_mode{0};
    run_blocks(100, parallel, [&](int64_t b) {
      ++runs[static_cast<size_t>(b)];
      threads[static_cast<size_t>(b)] = std::this_thread::get_id();
      without_mode += !c10::InferenceMode::is_enabled();
    });
    CHECK(runs == std::vector<int>(100, 1));
    CHECK(without_mode == 0);
    int64_t ranges = 1;
    for (size_t b = 1; b < threads.size(); ++b) ranges += threads[b] != threads[b - 1];
    CHECK(ranges == (parallel ? worker_count() : 1));
  }
  run_blocks(0, true, [](int64_t) { throw std::logic_error("no block"); });
}

TEST_CASE("inside a block ATen is serial; a single block uses all threads") {
  std::atomic<int> serial{0};
  run_blocks(4, true, [&](int64_t) { serial += at::in_parallel_region(); });
  CHECK(serial == (worker_count() > 1 ? 4 : 0));
  run_blocks(1, true, [&](int64_t) { CHECK_FALSE(at::in_parallel_region()); });
}

TEST_CASE("the lowest block's exception is rethrown") {
  for (bool parallel : {false, true}) {
    CHECK_THROWS_WITH(run_blocks(100, parallel,
                                 [](int64_t b) {
                                   if (b == 99 || b == 60 || b == 7) {
                                     throw std::runtime_error(std::to_string(b));
                                   }
                                 }),
                      "7");
  }
}

TEST_CASE("a GPU that cannot be used is named, with the reason") {
  CHECK(ExecutionContext::of(virtual_cpus(3)[2]).torch_device().is_cpu());
  const Device missing{Device::Type::cuda, gpu_count()};
  CHECK_THROWS_WITH(ExecutionContext::of(missing),
                    Catch::Matchers::Contains("Received: " + to_string(missing)));
}

TEST_CASE("blocks of given devices run once each, under InferenceMode") {
  for (bool parallel : {false, true}) {
    const std::vector<c10::Device> devices(100, c10::Device(c10::kCPU));
    std::vector<int> runs(100);
    std::atomic<int> without_mode{0};
    run_blocks(devices, parallel, [&](int64_t b) {
      ++runs[static_cast<size_t>(b)];
      without_mode += !c10::InferenceMode::is_enabled();
    });
    CHECK(runs == std::vector<int>(100, 1));
    CHECK(without_mode == 0);
  }
}

}  // namespace execution_test
