#include <tessera/framework/comm/comm_log.hpp>

#include <thread>

#include "tests/support/catch.hpp"

namespace comm_log_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("received bytes of each collective") {
  CHECK(received_bytes(CommOp::all_reduce, 100, 4) == 150);
  CHECK(received_bytes(CommOp::all_gather, 100, 4) == 75);
  CHECK(received_bytes(CommOp::reduce_scatter, 100, 4) == 75);
  CHECK(received_bytes(CommOp::all_to_all, 100, 4) == 75);
  CHECK(received_bytes(CommOp::exchange, 100, 4) == 100);
  CHECK(received_bytes(CommOp::all_reduce, 100, 1) == 0);
  CHECK(received_bytes(CommOp::exchange, 100, 1) == 0);
}

TEST_CASE("a log counts by kind and dimensions and prints one line per entry") {
  CommLog log;
  log.add({CommOp::all_reduce, "batch", 4, 100, 150});
  log.add({CommOp::all_reduce, "batch,model", 8, 8, 14});
  log.add({CommOp::exchange, "height", 2, 10, 10});
  CHECK(log.count(CommOp::all_reduce) == 2);
  CHECK(log.count(CommOp::all_reduce, "batch") == 1);
  CHECK(log.count(CommOp::all_gather) == 0);
  CHECK(log.received() == 174);
  CHECK(log.to_string() ==
        "all_reduce over batch (4 members), 100 bytes\n"
        "all_reduce over batch,model (8 members), 8 bytes\n"
        "exchange over height (2 members), 10 bytes\n");
  log.clear();
  CHECK(log.entries().empty());
  CHECK(log.received() == 0);
}

TEST_CASE("every kind has a name") {
  CHECK(to_string(CommOp::all_gather) == "all_gather");
  CHECK(to_string(CommOp::reduce_scatter) == "reduce_scatter");
  CHECK(to_string(CommOp::all_to_all) == "all_to_all");
  CHECK(to_string(CommOp::exchange) == "exchange");
}

TEST_CASE("scopes nest, belong to their thread and end with their block") {
  CHECK(CommLogScope::current() == nullptr);
  CommLog outer, inner;
  {
    const CommLogScope one(outer);
    CHECK(CommLogScope::current() == &outer);
    {
      const CommLogScope two(inner);
      CHECK(CommLogScope::current() == &inner);
    }
    CHECK(CommLogScope::current() == &outer);
    const CommLog* seen = &outer;
    std::thread([&] { seen = CommLogScope::current(); }).join();
    CHECK(seen == nullptr);
  }
  CHECK(CommLogScope::current() == nullptr);
}

}  // namespace comm_log_test
