#include <tessera/tessera.hpp>

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"

namespace checkpoint_thread_test {

/// Whether this thread cannot start other threads.
thread_local bool no_threads = false;

}  // namespace checkpoint_thread_test

// Replaces the C library's function, which std::thread calls.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (checkpoint_thread_test::no_threads) return EAGAIN;
  static auto* const real = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, run, argument);
}

namespace checkpoint_thread_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("if one process cannot start a thread to save on, all throw and can continue") {
  const test::TempFolder folder;
  const std::string path = folder / "c";
  std::array<std::string, 2> texts;
  test::run_ranks(2, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Mesh mesh = test::rank_mesh({{"batch", 2}}, communicator);
    const Variable w("w", filled({4}, 3, at::kFloat, Layout::replicated(mesh, 1)));
    Checkpoint checkpoint({w});
    no_threads = rank == 1;
    try {
      checkpoint.save(path, {.asynchronous = true});
      checkpoint.wait();
    } catch (const std::exception& error) {
      texts[static_cast<size_t>(rank)] = error.what();
    }
    no_threads = false;
    test::expect(!std::filesystem::exists(path), "it was saved");
    communicator->gather("looked", "");
    checkpoint.save(path, {.asynchronous = true});
    checkpoint.wait();
    checkpoint.restore(path);
  });
  CHECK_THAT(texts[0], Contains("an error on rank 1: "));
  CHECK_THAT(texts[1], Contains("Resource temporarily unavailable"));
}

}  // namespace checkpoint_thread_test
