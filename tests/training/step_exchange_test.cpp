#include <tessera/framework/training/internal/step_exchange.hpp>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"

namespace step_exchange_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the text of the error of type E with which an exchange of this work ends.
template <class E>
std::string error_of(const Mesh& mesh, const std::function<void()>& work) {
  try {
    StepExchange(mesh).do_on_all_ranks(work);
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

void read_nothing() { throw FileError("part-2", "readable", "nothing", ""); }

}  // namespace

TEST_CASE("one process's exception is an error on the others, with its text") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    if (rank == 1) {
      const std::string text = error_of<FileError>(mesh, read_nothing);
      expect(text == "[part-2] readable. Received: nothing.", text);
    } else {
      const std::string text = error_of<CommError>(mesh, [] {});
      expect(text.find("an error on rank 1: [part-2] readable. Received: nothing.") !=
                 std::string::npos,
             text);
    }
  }));
}

TEST_CASE("a request to stop on one process stops all in the same step") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    StepExchange exchange(rank_mesh({{"a", 2}}, communicator));
    exchange.do_on_all_ranks([] {});
    expect(!exchange.stops(), "nobody has asked to stop");
    exchange.set_stop(rank == 1);
    exchange.do_on_all_ranks([] {});
    expect(exchange.stops(), "rank 1 has asked to stop");
  }));
}

TEST_CASE("a process reports its own error if the others cannot be reached") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    if (rank == 0) return;
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    const std::string text = error_of<FileError>(mesh, read_nothing);
    expect(text.find("[part-2]") != std::string::npos, text);
  }));
}

TEST_CASE("a process whose memory ran out in a step does not wait for the others") {
  // They may be in a collective that it has left.
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    if (rank == 0) return;
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    CommLog log;
    const CommLogScope logging(log);
    const std::string text = error_of<std::bad_alloc>(mesh, [] { throw std::bad_alloc(); });
    expect(text == std::bad_alloc().what(), text);
    const std::runtime_error of_aten("DefaultCPUAllocator: can't allocate memory");
    const std::string aten = error_of<std::runtime_error>(mesh, [&] { throw of_aten; });
    expect(aten == of_aten.what(), aten);
    expect(log.entries().empty(), "it was in a collective");
  }));
}

}  // namespace step_exchange_test
