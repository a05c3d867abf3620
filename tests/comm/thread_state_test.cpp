#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>

#include <thread>

#include "tests/support/catch.hpp"

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("a mode belongs to its thread, and a new thread has none") {
  CommLog log;
  const std::string label = "hidden/kernel";
  const CommLogScope logged(log);
  const CommLabel labelled(label);
  const ReduceDtypeScope reduced(at::kDouble);
  CHECK(thread_state().comm_log == &log);
  CHECK(thread_state().reduce_dtype == at::kDouble);
  bool has_none = false;
  std::thread([&] {
    const ThreadState& other = thread_state();
    has_none = !other.comm_log && !other.reduce_dtype && CommLabel::current().empty();
  }).join();
  CHECK(has_none);
  CHECK(CommLabel::current() == label);
}
