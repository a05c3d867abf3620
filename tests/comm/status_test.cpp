#include <tessera/framework/comm/communicator.hpp>
#include <tessera/framework/comm/status.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"

using namespace tessera;
using namespace tessera::test;

TEST_CASE("the gravest status wins, with its own reason") {
  StatusWord word;
  CHECK(word.status() == StepStatus::ok);
  word.raise(StepStatus::stop, "callback");
  word.raise(StepStatus::save, "timer");
  CHECK(word.status() == StepStatus::stop);
  CHECK(word.reason() == "callback");
  word.raise(StepStatus::error, "bad label");
  CHECK(word.status() == StepStatus::error);
  CHECK(word.reason() == "bad label");
  word.exchange(create_mesh({{"a", 4}}));
  CHECK(word.status() == StepStatus::error);
  CHECK(word.rank() == 0);
  CHECK(word.reason() == "bad label");
  word.clear();
  CHECK(word.status() == StepStatus::ok);
  CHECK(word.reason().empty());
}

TEST_CASE("all processes see the gravest status, and who raised it says why") {
  CHECK_NOTHROW(run_ranks(4, [](int rank, const auto& communicator) {
    const Mesh mesh = rank_mesh({{"a", 4}}, communicator);
    StatusWord word;
    word.exchange(mesh);
    expect(word.status() == StepStatus::ok, "all is well");
    if (rank == 1) word.raise(StepStatus::stop, "callback");
    if (rank >= 2) word.raise(StepStatus::error, "bad label");
    word.exchange(mesh);
    expect(word.status() == StepStatus::error, "the gravest");
    expect(word.rank() == 2, "the lowest rank that raised it");
    expect(word.reason() == (rank == 2 ? "bad label" : ""), "its reason");
    word.clear();
    if (rank == 3) word.raise(StepStatus::save, "signal");
    word.exchange(mesh);
    expect(word.status() == StepStatus::save && word.rank() == 3, "the next step");
  }));
}
