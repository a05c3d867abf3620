#include "tests/support/thread_communicator.hpp"

#include <tessera/framework/base/error.hpp>

#include <ATen/ATen.h>

#include <atomic>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace thread_communicator_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using std::chrono::milliseconds;

namespace {

/// Two members of each of two ranks, in the order 0 1 0 1.
Group crossed(int rank) { return {{0, 1}, {0, 1, 0, 1}, {rank, 2 + rank}}; }
Group plain(int ranks, int rank) {
  Group group{{0}, {}, {rank}};
  for (int r = 0; r < ranks; ++r) group.owner.push_back(r);
  return group;
}

at::Tensor number(double value, int64_t extent = 1) { return at::full({extent}, value); }

/// Returns once every rank has called it.
void meet(Communicator& communicator) {
  at::Tensor out;
  wait(communicator.all_reduce(plain(communicator.size(), communicator.rank()), Reduce::sum,
                               {number(1)}, out));
}

std::string first_error(int ranks, const RankFunction& function) {
  try {
    run_ranks(ranks, function, milliseconds(5000));
  } catch (const CommError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("threads: all_reduce reduces members within and between ranks") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    at::Tensor out;
    wait(communicator->all_reduce(crossed(rank), Reduce::sum, {number(1), number(10 + rank)}, out));
    expect(out.item<float>() == 23, "sum");
    wait(communicator->all_reduce(crossed(rank), Reduce::max, {number(rank)}, out));
    expect(out.item<float>() == 1, "max of one addend a rank");
  }));
}

TEST_CASE("threads: results are garbage until their work is waited for") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    at::Tensor out;
    const WorkPtr work = communicator->all_reduce(plain(2, rank), Reduce::sum, {number(1)}, out);
    expect(std::isnan(out.item<float>()) && !work->done(), "not yet");
    work->wait();
    expect(out.item<float>() == 2 && work->done(), "now");
  }));
}

TEST_CASE("threads: all_gather orders members, not ranks") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    GatheredValue value = {0, {1, 2, 0, 1}, {number(rank, 1 + rank), number(2 + rank, rank)}};
    wait(communicator->all_gather(crossed(rank), std::span(&value, 1)));
    expect(difference(value.out, at::tensor({0.f, 1.f, 1.f, 3.f})).empty(), "joined");
  }));
}

TEST_CASE("threads: reduce_scatter and all_to_all") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    ScatteredValue value = {0, {{0, 1}, {1, 3}}, {at::arange(3) + rank}};
    wait(communicator->reduce_scatter(plain(2, rank), Reduce::sum, std::span(&value, 1)));
    expect(difference(value.out[0],
                      rank == 0 ? at::tensor({1}, at::kLong) : at::tensor({3, 5}, at::kLong))
               .empty(),
           "scatter");
    std::vector<std::vector<at::Tensor>> recv = {{number(-1), number(-1)}};
    wait(communicator->all_to_all(plain(2, rank), {{number(10 * rank), number(10 * rank + 1)}},
                                  recv));
    expect(recv[0][0].template item<float>() == rank, "from member 0");
    expect(recv[0][1].template item<float>() == 10 + rank, "from member 1");
  }));
}

TEST_CASE("threads: groups of some ranks do not wait for the others") {
  CHECK_NOTHROW(run_ranks(4, [](int rank, const auto& communicator) {
    const int row = rank / 2 * 2;
    at::Tensor out;
    for (int i = 0; i < 100 * (1 + row); ++i) {
      wait(communicator->all_reduce({{0}, {row, row + 1}, {rank - row}}, Reduce::sum,
                                    {number(rank)}, out));
      expect(out.item<float>() == 2 * row + 1, "sum of a row");
    }
  }));
}

TEST_CASE("threads: ranks that call different things all get an error") {
  std::atomic<int> errors{0};
  const auto both = [&](const RankFunction& function) {
    return first_error(2, [&](int rank, const auto& communicator) {
      try {
        function(rank, communicator);
      } catch (const CommError&) {
        ++errors;
        throw;
      }
    });
  };
  at::Tensor out[2];
  const std::string op = both([&](int rank, const auto& communicator) {
    GatheredValue value = {0, {1, 1}, {number(1)}};
    if (rank == 0) communicator->all_gather(plain(2, rank), std::span(&value, 1));
    communicator->all_reduce(plain(2, rank), Reduce::sum, {number(1)}, out[rank]);
  });
  CHECK(op.find("all_gather of Float (-1,)") != op.npos);
  CHECK(op.find("all_reduce sum of Float (1,)") != op.npos);
  both([&](int rank, const auto& communicator) {
    communicator->all_reduce(plain(2, rank), Reduce::sum, {number(1, 1 + rank)}, out[rank]);
  });
  both([&](int rank, const auto& communicator) {
    const Reduce kind = rank ? Reduce::sum : Reduce::max;
    communicator->all_reduce(plain(2, rank), kind, {number(1)}, out[rank]);
  });
  both([&](int rank, const auto& communicator) {
    std::vector<std::vector<at::Tensor>> recv = {{number(0, 1), number(0, 1)}};
    communicator->all_to_all(plain(2, rank), {{number(1, 2), number(1, 2)}}, recv);
  });
  CHECK(errors == 8);
}

TEST_CASE("threads: ranks that wait for each other in different groups get an error") {
  const std::string text = first_error(3, [](int rank, const auto& communicator) {
    at::Tensor out;
    const int ranks = rank == 0 ? 2 : 3;
    communicator->all_reduce(plain(ranks, rank), Reduce::sum, {number(1)}, out);
  });
  CHECK(text.find("of other ranks") != text.npos);
}

TEST_CASE("threads: nobody waits for a rank that has ended or failed") {
  const std::string ended = first_error(2, [](int rank, const auto& communicator) {
    if (rank == 0) meet(*communicator);
  });
  CHECK(ended.find("has ended") != ended.npos);
  CHECK_THROWS_WITH(run_ranks(2,
                              [](int rank, const auto& communicator) {
                                if (rank == 0) throw ShapeError("me", "a shape", "none", "");
                                meet(*communicator);
                              }),
                    "[me] a shape. Received: none.");
}

TEST_CASE("threads: a late rank is an error after the patience") {
  std::atomic<bool> stop{false};
  CHECK_THROWS_WITH(run_ranks(
                        2,
                        [&](int rank, const auto& communicator) {
                          if (rank == 1) {
                            while (!stop) std::this_thread::yield();
                            return;
                          }
                          try {
                            meet(*communicator);
                          } catch (const CommError&) {
                            stop = true;
                            throw;
                          }
                        },
                        milliseconds(50)),
                    Catch::Contains("no answer within 50 ms to all_reduce"));
}

TEST_CASE("threads: abort wakes everyone, now and later") {
  std::atomic<int> woken{0};
  CHECK_NOTHROW(run_ranks(3, [&](int rank, const auto& communicator) {
    if (rank == 0) communicator->abort("signal 15");
    for (int i = 0; i < 2; ++i) {
      try {
        meet(*communicator);
      } catch (const CommError& error) {
        if (std::string(error.what()).find("signal 15") != std::string::npos) ++woken;
      }
    }
  }));
  CHECK(woken == 6);
}

}  // namespace thread_communicator_test
