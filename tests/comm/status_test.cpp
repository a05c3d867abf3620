#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/status.hpp>

#include <atomic>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"

namespace status_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Text of the error of type E that a function throws.
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

TEST_CASE("the gravest status wins, with its own reason") {
  StepStatus word;
  CHECK(word.status() == StatusLevel::ok);
  word.raise(StatusLevel::save, "15");
  word.raise(StatusLevel::stop, "callback");
  CHECK(word.status() == StatusLevel::save);
  CHECK(word.reason() == "15");
  word.raise(StatusLevel::error, "bad label");
  CHECK(word.status() == StatusLevel::error);
  CHECK(word.reason() == "bad label");
  word.exchange(create_mesh({{"a", 4}}));
  CHECK(word.status() == StatusLevel::error);
  CHECK(word.rank() == 0);
  CHECK(word.reason() == "bad label");
  word.clear();
  CHECK(word.status() == StatusLevel::ok);
  CHECK(word.reason().empty());
}

TEST_CASE("all processes see the gravest status, who raised it and why") {
  CHECK_NOTHROW(run_ranks(4, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 4}}, communicator);
    StepStatus word;
    word.exchange(mesh);
    expect(word.status() == StatusLevel::ok, "all is well");
    if (rank == 1) word.raise(StatusLevel::stop, "");
    if (rank >= 2) word.raise(StatusLevel::error, str("bad label ", rank));
    word.exchange(mesh);
    expect(word.status() == StatusLevel::error, "the gravest");
    expect(word.rank() == 2, "the lowest rank that raised it");
    expect(word.reason() == "bad label 2", "its reason");
    expect(word.reasons() == std::vector<std::string>{"", "", "bad label 2", "bad label 3"},
           "all reasons");
    expect(word.error_text() == "an error on rank 2: bad label 2", "its text");
    word.clear();
    if (rank == 3) word.raise(StatusLevel::save, "15");
    word.exchange(mesh);
    expect(word.status() == StatusLevel::save && word.rank() == 3, "the next step");
    expect(word.reason() == "15", "the next reason");
  }));
}

TEST_CASE("a process that only stops or goes on gathers no texts") {
  std::atomic<int> stopped{0};
  // Rank 1 leaves right after the exchange, so that whoever gathered would not return.
  CHECK_NOTHROW(run_ranks(2, [&](int rank, const auto& communicator) {
    StepStatus word;
    if (rank == 0) word.raise(StatusLevel::stop, "");
    word.exchange(rank_mesh({{"a", 2}}, communicator));
    if (word.status() == StatusLevel::stop) ++stopped;
    expect(word.reasons().empty(), "no reasons");
  }));
  CHECK(stopped == 2);
}

TEST_CASE("the word tells the rows of all next batches and whether they are alike") {
  CHECK_NOTHROW(run_ranks(3, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 3}}, communicator);
    StepStatus word;
    word.set_next_batch(8, 77);
    word.exchange(mesh);
    expect(word.min_rows() == 8 && word.max_rows() == 8 && word.same_signature(), "alike");
    word.clear();
    word.set_next_batch(rank == 1 ? 0 : 5 + rank, 77);
    word.exchange(mesh);
    expect(word.min_rows() == 0 && word.max_rows() == 7 && word.same_signature(), "of other rows");
    word.clear();
    // Half of all hashes are negative.
    word.set_next_batch(5, rank == 2 ? ~size_t(0) : 3);
    word.exchange(mesh);
    expect(word.min_rows() == 5 && !word.same_signature(), "of another form");
  }));
}

TEST_CASE("processes that made other collectives learn it in the same exchange") {
  CHECK_NOTHROW(run_ranks(3, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 3}}, communicator);
    const auto call = [&](const Shape& shape) {
      communicator->begin({.mesh = mesh, .dims = 1, .shape = shape});
    };
    StepStatus word;
    call({3});
    word.exchange(mesh);
    call({rank == 1 ? 4 : 3});
    const std::string text = error_of<CommError>([&] { word.exchange(mesh); });
    expect(text.find("the same collectives") != std::string::npos, text);
    expect(text.find("sequence 1 on ranks 0 and 2; sequence 2 on rank 1") != std::string::npos,
           text);
    StepStatus failed;
    if (rank == 1) failed.raise(StatusLevel::error, "no file");
    failed.exchange(mesh);
    expect(failed.reason() == "no file", "an error comes before what follows from it");
  }));
}

TEST_CASE("the exchange is a call that all ranks compare") {
  CHECK_NOTHROW(run_ranks(2, [](int, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    StepStatus word;
    word.exchange(mesh);
    expect(notes_of(mesh).calls == 1, str(notes_of(mesh).calls));
  }));
}

TEST_CASE("what one process throws is an error for the others, with its text") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    const auto local = [&](StepStatus&) {
      if (rank == 1) throw FileError("part-2", "readable", "nothing", "");
    };
    if (rank == 1) {
      const std::string text = error_of<FileError>([&] { all_reduce_status(mesh, local); });
      expect(text.find("[part-2]") != std::string::npos, text);
    } else {
      const StepStatus word = all_reduce_status(mesh, local);
      expect(word.error_text() == "an error on rank 1: [part-2] readable. Received: nothing.",
             word.error_text());
    }
  }));
}

TEST_CASE("a process tells its own error where the others cannot be reached any more") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    if (rank == 0) return;
    const Mesh mesh = rank_mesh({{"a", 2}}, communicator);
    const std::string text = error_of<FileError>([&] {
      all_reduce_status(mesh,
                        [](StepStatus&) { throw FileError("part-2", "readable", "nothing", ""); });
    });
    expect(text.find("[part-2]") != std::string::npos, text);
  }));
}

TEST_CASE("ranks are named in lists") {
  CHECK(rank_names(std::vector<int>{1}) == "rank 1");
  CHECK(rank_names(std::vector<int>{0, 2}) == "ranks 0 and 2");
  CHECK(rank_names(std::vector<int>{0, 2, 3}) == "ranks 0, 2 and 3");
  CHECK(group_by_text({"a", "b", "a"}) == "a on ranks 0 and 2; b on rank 1");
}

}  // namespace status_test
