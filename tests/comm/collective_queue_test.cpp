#include <tessera/framework/comm/cpu/collective_queue.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/channel_ranks.hpp"
#include "tests/support/thread_communicator.hpp"

namespace collective_queue_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// A transport that carries no data.
class NoTransport final : public Transport {
 public:
  explicit NoTransport(std::function<void()> on_abort = [] {}) : on_abort_(std::move(on_abort)) {}
  std::string name() const override { return "nothing"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  TransferPtr send(int, uint64_t, const void*, size_t) override { return nullptr; }
  TransferPtr recv(int, uint64_t, void*, size_t) override { return nullptr; }
  TransferPtr recv(int, uint64_t, size_t, Reader) override { return nullptr; }
  bool sends_in_background() const override { return true; }
  void abort(const std::string&) override { on_abort_(); }

 private:
  std::function<void()> on_abort_;
};

struct Task final : CollectiveTask {
  explicit Task(
      std::function<void()> at_start = [] {}, std::function<void()> at_finish = [] {})
      : start_(std::move(at_start)), finish_(std::move(at_finish)) {}
  void start() override { start_(); }
  void finish() override { finish_(); }
  std::function<void()> start_, finish_;
};

std::shared_ptr<CollectiveQueue> open_queue(std::function<void()> on_abort = [] {}) {
  auto queue =
      std::make_shared<CollectiveQueue>(std::make_unique<NoTransport>(std::move(on_abort)));
  queue->open();
  return queue;
}

std::string error_of(Work& work) {
  try {
    work.wait();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

/// Pushes a collective whose start() blocks until `goes_on`; returns once start() has been called.
template <class Queue>
std::future<WorkPtr> begin_until(Queue& queue, std::latch& goes_on) {
  const auto begins = std::make_shared<std::latch>(1);
  std::future<WorkPtr> pushed = std::async(std::launch::async, [&queue, &goes_on, begins] {
    return queue.push(std::make_unique<Task>([&goes_on, begins] {
                        begins->count_down();
                        goes_on.wait();
                      }),
                      true);
  });
  begins->wait();
  return pushed;
}

}  // namespace

TEST_CASE("a collective pushed while another starts runs, even if no one waits for the other") {
  const auto queue = open_queue();
  std::latch goes_on(1);
  std::future<WorkPtr> first = begin_until(*queue, goes_on);
  // The first collective is running: this push wakes the queue's thread, which finds it running.
  const WorkPtr second = queue->push(std::make_unique<Task>(), true);
  std::this_thread::sleep_for(50ms);
  std::future<void> done = std::async(std::launch::async, [&] { second->wait(); });
  std::this_thread::sleep_for(50ms);
  goes_on.count_down();
  const WorkPtr begun = first.get();
  const bool came = done.wait_for(10s) == std::future_status::ready;
  CHECK(came);
  // Runs both if the queue's thread does not.
  begun->wait();
  if (!came) queue->push(std::make_unique<Task>(), false)->wait();
  done.get();
  queue->close();
}

TEST_CASE("a queue can be closed while a collective starts") {
  const auto queue = open_queue();
  std::latch goes_on(1);
  std::future<WorkPtr> first = begin_until(*queue, goes_on);
  std::future<void> closed = std::async(std::launch::async, [&] { queue->close(); });
  std::this_thread::sleep_for(50ms);
  goes_on.count_down();
  const WorkPtr begun = first.get();
  const bool came = closed.wait_for(10s) == std::future_status::ready;
  CHECK(came);
  CHECK_THAT(error_of(*begun), Contains("the communicator was destroyed"));
  closed.get();
}

TEST_CASE("an exception of a collective on the queue's thread is rethrown to the waiter") {
  const auto queue = open_queue();
  const WorkPtr begun = queue->push(std::make_unique<Task>(), true);
  // The queue's thread runs this one because it is not the first.
  const WorkPtr odd = queue->push(std::make_unique<Task>([] {}, [] { throw 7; }), false);
  while (!odd->done()) std::this_thread::sleep_for(1ms);
  CHECK_THAT(error_of(*odd), Contains("[nothing] a collective completes"));
  CHECK_THROWS_AS(queue->push(std::make_unique<Task>(), false), CommError);
  queue->close();
}

TEST_CASE("an exception while a collective's error is handled is rethrown to the waiter") {
  std::atomic<int> aborts{0};
  const auto queue = open_queue([&] {
    if (aborts++ == 0) throw std::bad_alloc();
  });
  const WorkPtr begun = queue->push(std::make_unique<Task>(), true);
  const WorkPtr bad =
      queue->push(std::make_unique<Task>([] {}, [] { throw std::runtime_error("broken"); }), false);
  while (!bad->done()) std::this_thread::sleep_for(1ms);
  CHECK_THROWS_AS(bad->wait(), std::bad_alloc);
  queue->close();
}

TEST_CASE("a reader's exception is thrown to its owner, whichever thread received the message") {
  test::MakeTransport make;
  for (const auto& [name, made] : test::transport_kinds()) {
    if (name == "shared memory") make = made;
  }
  REQUIRE(make);
  constexpr int repetitions = 200;
  constexpr size_t bytes = 64 << 10;
  int misplaced = 0, delivered = 0, by_other = 0;
  test::run_transports(make, 2, [&](int rank, std::unique_ptr<Transport> transport) {
    std::vector<std::byte> data(bytes);
    for (uint64_t repetition = 0; repetition < repetitions; ++repetition) {
      const uint64_t tag = 10 * repetition;
      if (rank == 0) {
        // Starts when both threads wait.
        transport->recv(1, tag + 2, data.data(), 64)->wait();
        const TransferPtr first = transport->send(1, tag, data.data(), bytes);
        const TransferPtr second = transport->send(1, tag + 1, data.data(), bytes);
        first->wait();
        second->wait();
        continue;
      }
      std::thread::id reader;
      const TransferPtr read =
          transport->recv(0, tag, bytes, [&](const std::byte*, size_t, size_t) {
            reader = std::this_thread::get_id();
            throw std::runtime_error("the reader's own");
          });
      const TransferPtr plain = transport->recv(0, tag + 1, data.data(), bytes);
      std::thread other([&] {
        try {
          plain->wait();
        } catch (const std::runtime_error&) {
          ++misplaced;
        }
      });
      const TransferPtr go = transport->send(0, tag + 2, data.data(), 64);
      try {
        read->wait();
      } catch (const std::runtime_error& error) {
        delivered += std::string(error.what()) == "the reader's own";
      }
      by_other += reader == other.get_id();
      other.join();
      go->wait();
    }
  });
  CHECK(misplaced == 0);
  CHECK(delivered == repetitions);
  CHECK(by_other > 0);
}

}  // namespace collective_queue_test
