#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/ops/internal/gpu_table.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/support/catch.hpp"

namespace memory_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Returns what a child process prints that reads the byte at an address, and the signal that ends
/// it.
std::pair<std::string, int> read_in_child(const void* address) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    // Restores the system's signal handling in place of Catch2's.
    signal(SIGSEGV, SIG_DFL);
    fake_gpu::catch_host_access();
    _exit(*static_cast<const volatile char*>(address));
  }
  close(ends[1]);
  std::string output(400, '\0');
  output.resize(size_t(std::max<ssize_t>(0, read(ends[0], output.data(), output.size()))));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {output, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace

TEST_CASE("a host access to GPU memory ends the program with the last operation's name") {
  const c10::InferenceMode inference;
  const at::Tensor x = at::ones({3}).to(device(1)).mul(2);
  const auto [output, signal] = read_in_child(x.const_data_ptr());
  CHECK(signal == SIGSEGV);
  CHECK_THAT(output, Contains("fake GPU: the host touched memory of cuda:1 at 0x"));
  CHECK_THAT(output, Contains("the last operation was aten::mul\n"));
  CHECK(x.cpu().equal(at::full({3}, 2)));
  CHECK(read_in_child(at::ones({3}).const_data_ptr()).second == 0);
}

TEST_CASE("released GPU memory is overwritten before it is reused") {
  const c10::InferenceMode inference;
  at::Tensor x = at::ones({1 << 10}).to(device(0));
  const void* const pointer = x.const_data_ptr();
  x.reset();
  const at::Tensor next = at::empty({1 << 10}, x_options());
  CHECK(next.const_data_ptr() == pointer);
  CHECK(next.cpu().isnan().all().item<bool>());
}

TEST_CASE("tensors are placed on the current GPU or the one that they name") {
  const c10::InferenceMode inference;
  const c10::DeviceGuard guard(device(1));
  CHECK(at::empty({2}, at::TensorOptions(c10::kPrivateUse1)).device() == device(1));
  CHECK(at::ones({2}, at::TensorOptions(device(0))).device() == device(0));
  CHECK_THROWS_WITH(at::empty({2}, at::TensorOptions(c10::Device(c10::kPrivateUse1, 2))),
                    Contains("there is no cuda:2 among 2 fake GPUs"));
}

TEST_CASE("memory is pinned if requested") {
  // Without a GPU nothing can be pinned.
  REQUIRE(device(0).index() == 0);
  const at::Tensor pinned = at::arange(5).pin_memory();
  CHECK(pinned.is_pinned());
  CHECK(pinned.narrow(0, 3, 2).is_pinned());
  CHECK_FALSE(at::arange(5).is_pinned());
  CHECK(pinned.equal(at::arange(5)));
}

TEST_CASE("a table that depends on shapes is made once per GPU, and the cache is bounded") {
  int made = 0;
  const auto table = [&](int64_t count, at::ScalarType dtype) {
    const auto make = [&] {
      ++made;
      return at::arange(count, at::kDouble);
    };
    return cached_table("op", {count}, x_options().dtype(dtype), make);
  };
  CHECK(table(3, at::kFloat).cpu().equal(at::arange(3, at::kFloat)));
  table(3, at::kFloat);
  CHECK(made == 1);
  CHECK(table(3, at::kDouble).cpu().equal(at::arange(3, at::kDouble)));
  CHECK(made == 2);
  // The tables take more than 64 MiB.
  for (const int64_t count : {10'000'000, 11'000'000}) table(count, at::kFloat);
  CHECK(made == 4);
  table(3, at::kFloat);
  CHECK(made == 5);
}

}  // namespace memory_test
