#include <tessera/framework/tensor/internal/memory_planner.hpp>

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include <tessera/framework/tensor/internal/execution.hpp>

#include "tests/support/catch.hpp"

namespace step_memory_test {

/// The index of this thread's next allocation of an object that fails; 0: none.
thread_local int failing_allocation = 0;

}  // namespace step_memory_test

// Replaces the C++ library's operators.
void* operator new(size_t bytes) {
  int& next = step_memory_test::failing_allocation;
  if (next > 0 && --next == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(std::max<size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace step_memory_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr int64_t many = 4096;

at::Tensor bytes(int64_t size) { return at::empty({size}, at::kByte); }

/// Whether all bytes are `value`; allocates nothing itself.
bool holds(const at::Tensor& tensor, int64_t value) {
  const auto* const data = tensor.const_data_ptr<uint8_t>();
  return std::all_of(data, data + tensor.numel(), [&](uint8_t byte) { return byte == value; });
}

/// Makes a chain of tensors, each from the previous one, of which two are alive at a time; returns
/// the first and last addresses.
std::pair<const void*, const void*> chain(MemoryPlanner& memory, int64_t length) {
  MemoryPlanner::Run run(memory);
  const void* first = nullptr;
  at::Tensor now;
  for (int64_t i = 0; i < length; ++i) {
    run.at(i);
    at::Tensor next = bytes(many).fill_(static_cast<int64_t>(i));
    if (now.defined()) REQUIRE(holds(now, i - 1));
    now = next;
    if (i == 0) first = now.data_ptr();
  }
  run.complete();
  return {first, now.data_ptr()};
}

}  // namespace

TEST_CASE("a request whose tracking fails releases its slot") {
  MemoryPlanner memory(make_arena());
  chain(memory, 3);
  int failures = 0;
  for (int n = 1; n < 20; ++n) {
    MemoryPlanner::Run run(memory);
    run.at(0);
    failing_allocation = n;
    try {
      const at::Tensor asked = bytes(many);
      failing_allocation = 0;
      break;
    } catch (const std::exception&) {
      ++failures;
    }
  }
  failing_allocation = 0;
  CHECK(failures > 0);
  const int64_t misses = memory.stats().misses;
  chain(memory, 3);
  CHECK(memory.stats().misses == misses);
}

TEST_CASE("tensors that are not alive together share memory, from the second run on") {
  MemoryPlanner memory(make_arena());
  chain(memory, 9);
  const MemoryPlanner::Stats measured = memory.stats();
  CHECK(measured.asked == 9 * many);
  CHECK(measured.planned == 2 * many);
  CHECK(measured.hits == 0);
  const auto second = chain(memory, 9);
  const auto third = chain(memory, 9);
  CHECK(second == third);
  CHECK(second.first == second.second);
  CHECK(memory.stats().hits == 18);
  CHECK(memory.stats().misses == 0);
}

TEST_CASE("tensors that outlive a run are not planned, and keep their values") {
  MemoryPlanner memory(make_arena());
  std::vector<at::Tensor> outliving;
  for (int64_t step = 0; step < 5; ++step) {
    MemoryPlanner::Run run(memory);
    run.at(0);
    outliving.push_back(bytes(many).fill_(step));
    const at::Tensor temporary = bytes(many).fill_(99);
    run.complete();
  }
  for (int64_t step = 0; step < 5; ++step) {
    CHECK(holds(outliving[static_cast<size_t>(step)], step));
  }
  CHECK(memory.stats().planned == many);
  // The requests outside the plan.
  CHECK(memory.stats().misses == 4);
  CHECK(memory.stats().hits == 4);
}

TEST_CASE("memory that somebody still holds is not reused") {
  std::optional<MemoryPlanner> memory(make_arena());
  at::Tensor held;
  for (int64_t step = 0; step < 4; ++step) {
    MemoryPlanner::Run run(*memory);
    run.at(0);
    at::Tensor first = bytes(many).fill_(1);
    // Not held while it was measured.
    if (step == 2) held = first;
    first.reset();
    run.at(1);
    const at::Tensor second = bytes(many).fill_(2);
    if (step == 2) CHECK(holds(held, 1));
    run.complete();
  }
  CHECK(memory->stats().planned == many);
  CHECK(memory->stats().misses == 3);
  memory.reset();
  CHECK(holds(held, 1));
  held.fill_(3);
}

TEST_CASE("other sizes, and more tensors than were measured, get ordinary memory") {
  MemoryPlanner memory(make_arena());
  for (int64_t extra : {0, 0, 1, 2}) {
    MemoryPlanner::Run run(memory);
    run.at(0);
    const at::Tensor planned = bytes(many + (extra == 2 ? 8 : 0)).fill_(1);
    at::Tensor more;
    if (extra == 1) more = bytes(many).fill_(2);
    CHECK(holds(planned, 1));
    run.complete();
  }
  CHECK(memory.stats().hits == 2);
  CHECK(memory.stats().misses == 2);
}

TEST_CASE("memory allocated without a context is planned too") {
  c10::Allocator& allocator = *c10::GetAllocator(c10::kCPU);
  MemoryPlanner memory(make_arena());
  for (int run = 0; run < 3; ++run) {
    MemoryPlanner::Run now(memory);
    now.at(0);
    void* const scratch = allocator.raw_allocate(many);
    const at::Tensor beside = bytes(many).fill_(7);
    std::memset(scratch, 9, many);
    CHECK(holds(beside, 7));
    allocator.raw_deallocate(scratch);
    now.complete();
  }
  CHECK(memory.stats().planned >= many);
  CHECK(memory.stats().hits == 4);
  CHECK(memory.stats().misses == 0);
  // Outside of a run, too.
  allocator.raw_deallocate(allocator.raw_allocate(many));
}

TEST_CASE("blocks on other threads have separate memory") {
  MemoryPlanner memory(make_arena());
  for (int64_t step = 0; step < 6; ++step) {
    MemoryPlanner::Run run(memory);
    std::vector<at::Tensor> out(8);
    run.at(0);
    run_blocks(8, true, [&](int64_t b) {
      const at::Tensor temporary = bytes(many).fill_(77);
      out[static_cast<size_t>(b)] = bytes(many).fill_(b);
    });
    run.at(1);
    const at::Tensor after = bytes(many).fill_(88);
    for (int64_t b = 0; b < 8; ++b) {
      CHECK(holds(out[static_cast<size_t>(b)], b));
    }
    run.complete();
  }
  CHECK(memory.stats().misses == 0);
  CHECK(memory.stats().hits == 5 * 17);
}

TEST_CASE("several plans share one buffer in turns") {
  const auto buffer = make_arena();
  MemoryPlanner small(buffer), large(buffer);
  for (int64_t turn = 0; turn < 3; ++turn) {
    chain(small, 3);
    chain(large, 20);
  }
  CHECK(small.stats().hits == 6);
  CHECK(large.stats().hits == 40);
  at::Tensor held;
  {
    MemoryPlanner::Run run(small);
    run.at(0);
    held = bytes(many).fill_(5);
  }
  const int64_t before = large.stats().hits;
  chain(large, 20);
  CHECK(large.stats().hits == before);
  CHECK(holds(held, 5));
}

TEST_CASE("an aborted run is not planned, and nested blocks are skipped") {
  MemoryPlanner memory(make_arena());
  {
    MemoryPlanner::Run run(memory);
    run.at(0);
    bytes(many);
  }
  CHECK(memory.stats().planned == 0);
  chain(memory, 9);
  CHECK(memory.stats().asked == 9 * many);
  MemoryPlanner nested(make_arena());
  for (int64_t step = 0; step < 3; ++step) {
    MemoryPlanner::Run run(nested);
    run.at(0);
    run_blocks(2, true, [&](int64_t) {
      run_blocks(2, false, [&](int64_t b) { CHECK(holds(bytes(many).fill_(b), b)); });
    });
    run.complete();
  }
  CHECK(nested.stats().asked == 0);
}

}  // namespace step_memory_test
