#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/status.hpp>

#include <atomic>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"

namespace status_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the text of the error of type E that a function throws.
template <class E>
std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the most severe status wins, with its own reason") {
  StepStatus status;
  CHECK(status.status() == StatusLevel::ok);
  status.raise(StatusLevel::save, "15");
  status.raise(StatusLevel::stop, "callback");
  CHECK(status.status() == StatusLevel::save);
  CHECK(status.reason() == "15");
  status.raise(StatusLevel::error, "bad label");
  CHECK(status.status() == StatusLevel::error);
  CHECK(status.reason() == "bad label");
  status.exchange(create_mesh({{"a", 4}}));
  CHECK(status.status() == StatusLevel::error);
  CHECK(status.rank() == 0);
  CHECK(status.reason() == "bad label");
  status.clear();
  CHECK(status.status() == StatusLevel::ok);
  CHECK(status.reason().empty());
}

TEST_CASE("all processes see the most severe status, who raised it and why") {
  CHECK_NOTHROW(run_ranks(4, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 4}}, communicator);
    StepStatus status;
    status.exchange(mesh);
    expect(status.status() == StatusLevel::ok, "all is well");
    if (rank == 1) status.raise(StatusLevel::stop, "");
    if (rank >= 2) status.raise(StatusLevel::error, str("bad label ", rank));
    status.exchange(mesh);
    expect(status.status() == StatusLevel::error, "the most severe");
    expect(status.rank() == 2, "the lowest rank that raised it");
    expect(status.reason() == "bad label 2", "its reason");
    expect(status.reasons() == std::vector<std::string>{"", "", "bad label 2", "bad label 3"},
           "all reasons");
    expect(status.error_text() == "an error on rank 2: bad label 2", "its text");
    status.clear();
    if (rank == 3) status.raise(StatusLevel::save, "15");
    status.exchange(mesh);
    expect(status.status() == StatusLevel::save && status.rank() == 3, "the next step");
    expect(status.reason() == "15", "the next reason");
  }));
}

TEST_CASE("a process that stops or continues without an error gathers no texts") {
  std::atomic<int> stopped{0};
  // Rank 1 leaves right after the exchange, so gathering texts would not return.
  CHECK_NOTHROW(run_ranks(2, [&](int rank, const auto& communicator) {
    StepStatus status;
    if (rank == 0) status.raise(StatusLevel::stop, "");
    status.exchange(rank_mesh({{"a", 2}}, communicator));
    if (status.status() == StatusLevel::stop) ++stopped;
    expect(status.reasons().empty(), "no reasons");
  }));
  CHECK(stopped == 2);
}

TEST_CASE("the status tells the rows of all next batches and whether signatures are equal") {
  CHECK_NOTHROW(run_ranks(3, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 3}}, communicator);
    StepStatus status;
    status.set_next_batch(8, 77);
    status.exchange(mesh);
    expect(status.min_rows() == 8 && status.max_rows() == 8 && status.same_signature(), "equal");
    status.clear();
    status.set_next_batch(rank == 1 ? 0 : 5 + rank, 77);
    status.exchange(mesh);
    expect(status.min_rows() == 0 && status.max_rows() == 7 && status.same_signature(),
           "different rows");
    status.clear();
    // Half of all hashes are negative.
    status.set_next_batch(5, rank == 2 ? ~size_t(0) : 3);
    status.exchange(mesh);
    expect(status.min_rows() == 5 && !status.same_signature(), "another signature");
  }));
}

TEST_CASE("the exchange detects processes that made differing collectives") {
  CHECK_NOTHROW(run_ranks(3, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 3}}, communicator);
    const auto call = [&](const Shape& shape) {
      communicator->begin({.mesh = mesh, .dims = 1, .shape = shape});
    };
    StepStatus status;
    call({3});
    status.exchange(mesh);
    call({rank == 1 ? 4 : 3});
    const std::string text = error_of<CommError>([&] { status.exchange(mesh); });
    expect(text.find("the same collectives") != std::string::npos, text);
    expect(text.find("sequence 1 on ranks 0 and 2; sequence 2 on rank 1") != std::string::npos,
           text);
    StepStatus failed;
    if (rank == 1) failed.raise(StatusLevel::error, "no file");
    failed.exchange(mesh);
    expect(failed.reason() == "no file", "an error takes precedence over its consequences");
  }));
}

TEST_CASE("the exchange is a call that all ranks compare") {
  CHECK_NOTHROW(run_ranks(2, [](int, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    StepStatus status;
    status.exchange(mesh);
    expect(notes_of(mesh).calls == 1, str(notes_of(mesh).calls));
  }));
}

TEST_CASE("a process whose memory ran out does not wait for the others") {
  // They may be in a collective that it has left.
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    if (rank == 0) return;
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    CommLog log;
    const CommLogScope logging(log);
    const std::runtime_error of_aten("DefaultCPUAllocator: can't allocate memory");
    const std::string text = error_of<std::bad_alloc>(
        [&] { collectively(mesh, "folder", [] { throw std::bad_alloc(); }); });
    expect(text == std::bad_alloc().what(), text);
    const std::string aten =
        error_of<std::runtime_error>([&] { collectively(mesh, "folder", [&] { throw of_aten; }); });
    expect(aten == of_aten.what(), aten);
    expect(log.entries().empty(), "it was in a collective");
  }));
}

TEST_CASE("ranks are named in lists") {
  CHECK(rank_names(std::vector<int>{1}) == "rank 1");
  CHECK(rank_names(std::vector<int>{0, 2}) == "ranks 0 and 2");
  CHECK(rank_names(std::vector<int>{0, 2, 3}) == "ranks 0, 2 and 3");
  CHECK(group_by_text({"a", "b", "a"}) == "a on ranks 0 and 2; b on rank 1");
}

}  // namespace status_test
