#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/cpu/p2p_engine.hpp>

#include <ATen/ATen.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/thread_communicator.hpp"

namespace channel_failure_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_abort(const std::string& error, const std::string& reason) {
  const std::string end = "] the communicator was aborted. Received: " + reason + ".";
  return error.size() > end.size() && error.substr(error.size() - end.size()) == end;
}

/// Returns whether the error is an abort for this reason, or another rank's abort that came first
/// and closed the connections.
bool is_abort_of_all(const std::string& error, const std::string& reason) {
  return is_abort(error, reason) || error.find("stays open") != std::string::npos;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("engine: an abort frees every rank at once and stays") {
  for (const auto& [name, make] : transport_kinds()) {
    for (int64_t count : {10, 3000000}) {
      INFO(name << " " << count);
      std::vector<std::string> errors(3);
      std::atomic<double> longest{0};
      run_transports(make, 3, [&](int rank, std::unique_ptr<Transport> transport) {
        const auto engine = make_p2p_engine(std::move(transport));
        std::atomic<bool> freed = false;
        std::thread controller([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          const auto start = Clock::now();
          engine->abort("rank 2 was lost");
          while (!freed) {
            if (seconds_since(start) > 5) std::terminate();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          longest = std::max(longest.load(), seconds_since(start));
        });
        std::string text;
        at::Tensor out;
        if (rank != 2) {
          text = error_of([&] {
            wait(engine->all_reduce(group_of({0, 1, 2}, rank), Reduce::sum, {at::ones({count})},
                                    out));
          });
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds(400));
          text = error_of([&] { meet(*engine); });
        }
        errors[size_t(rank)] = text;
        freed = true;
        controller.join();
        const auto later = error_of([&] { meet(*engine); });
        expect(is_abort(later, "rank 2 was lost"), later);
      });
      for (const std::string& error : errors) {
        INFO(error);
        CHECK(is_abort_of_all(error, "rank 2 was lost"));
      }
      CHECK(longest < 2);
    }
  }
}

TEST_CASE("engine: a lost rank is named") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    std::vector<std::string> errors(3);
    run_transports(make, 3, [&](int rank, std::unique_ptr<Transport> transport) {
      if (rank == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        transport->abort("gone");
        return;
      }
      if (rank == 2) return;
      const auto engine = make_p2p_engine(std::move(transport));
      errors[0] = error_of([&] {
        at::Tensor out;
        wait(engine->all_reduce(group_of({0, 1}, 0), Reduce::sum, {at::ones({400000})}, out));
      });
    });
    CHECK(errors[0].find("the connection to rank 1 stays open") != std::string::npos);
  }
}

TEST_CASE("engine: data sent for one call is never used for another") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    std::vector<std::string> errors(2);
    std::barrier<> both(2);
    CHECK_NOTHROW(run_transports(make, 2, [&](int rank, std::unique_ptr<Transport> transport) {
      const auto engine = make_p2p_engine(std::move(transport));
      at::Tensor out;
      const Group group = group_of({0, 1}, rank);
      engine->set_call(7);
      wait(engine->all_reduce(group, Reduce::sum, {at::ones({5})}, out));
      engine->set_call(8 + uint64_t(rank));
      const WorkPtr work = engine->all_reduce(group, Reduce::sum, {at::ones({5})}, out);
      std::thread waiter([&] { errors[size_t(rank)] = error_of([&] { wait(work); }); });
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      const bool exchanged = work->done();
      both.arrive_and_wait();
      engine->abort("order");
      waiter.join();
      expect(!exchanged, "nothing was exchanged");
      both.arrive_and_wait();
    }));
    for (const std::string& error : errors) {
      INFO(error);
      CHECK(is_abort_of_all(error, "order"));
    }
  }
}

TEST_CASE("engine: differing sizes exchange no data and wait for an abort") {
  for (const auto& [name, make] : transport_kinds()) {
    INFO(name);
    std::barrier<> both(2);
    CHECK_NOTHROW(run_transports(make, 2, [&](int rank, std::unique_ptr<Transport> transport) {
      const auto engine = make_p2p_engine(std::move(transport));
      at::Tensor out;
      const WorkPtr work = engine->all_reduce(group_of({0, 1}, rank), Reduce::sum,
                                              {at::ones({rank ? 5 : 500000})}, out);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      const bool exchanged = work->done();
      both.arrive_and_wait();
      engine->abort("shape");
      both.arrive_and_wait();
      expect(!exchanged, "nothing was exchanged");
      expect(is_abort_of_all(error_of([&] { wait(work); }), "shape"), "the reason");
    }));
  }
}

}  // namespace channel_failure_test
