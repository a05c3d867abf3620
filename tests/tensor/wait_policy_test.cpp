#include <tessera/framework/base/internal/wait_policy.hpp>

#include <omp.h>

#include <atomic>
#include <ctime>
#include <fstream>
#include <thread>

#include <tessera/framework/tensor/internal/execution.hpp>

#include "apps/bench/busy_neighbours.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

namespace wait_policy_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;

namespace {

void loop_in_parallel() {
#pragma omp parallel
  { std::atomic_thread_fence(std::memory_order_seq_cst); }
}

/// Returns the CPU milliseconds that the process uses while this thread sleeps after a loop.
double spent_after_a_loop() {
  loop_in_parallel();
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(200ms);
  return 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

/// Runs one of the hidden cases below in a separate process: OpenMP reads its environment once.
void run_alone(const std::string& name, const std::string& spins) {
  const test::ProgramRun run =
      test::run_program("/proc/self/exe", {name, "-w", "NoTests"},
                        {{"OMP_WAIT_POLICY", ""}, {"GOMP_SPINCOUNT", spins}});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
}

}  // namespace

TEST_CASE("CPUs are contended after two waits in a row, and not after two seconds without") {
  CpuContentionDetector detector;
  const auto waits = [&](std::chrono::milliseconds waited,
                         std::chrono::milliseconds others = 50ms) {
    detector.add_sample({100ms, 100ms - waited, waited, others});
  };
  for (int i = 0; i < 3; ++i) {
    waits(11ms);
    waits(9ms);
    CHECK(!detector.contended());
  }
  // Caused by the process' own threads.
  for (int i = 0; i < 3; ++i) waits(50ms, 30ms);
  CHECK(!detector.contended());
  waits(11ms);
  waits(11ms);
  CHECK(detector.contended());
  for (int i = 0; i < 19; ++i) waits(1ms);
  CHECK(detector.contended());
  waits(3ms);
  for (int i = 0; i < 19; ++i) waits(1ms);
  CHECK(detector.contended());
  detector.add_sample({101ms, 101ms, 0ms, 50ms});
  CHECK(!detector.contended());
}

TEST_CASE("CPUs are not contended once other programs have been idle for 0.2 seconds") {
  CpuContentionDetector detector;
  const auto others_use = [&](std::chrono::milliseconds others,
                              std::chrono::milliseconds time = 100ms) {
    detector.add_sample({time, 80ms, 20ms, others});
  };
  others_use(50ms);
  others_use(50ms);
  CHECK(detector.contended());
  for (const auto others : {24ms, 26ms, -2ms}) others_use(others);
  CHECK(detector.contended());
  // The thread sleeps most of the time.
  others_use(900ms, 1s);
  CHECK(detector.contended());
  others_use(24ms);
  CHECK(!detector.contended());
}

TEST_CASE("time in which a thread sleeps tells nothing about contention") {
  CpuContentionDetector detector;
  const auto serves = [&](std::chrono::milliseconds ran, std::chrono::milliseconds waited) {
    detector.add_sample({10s, ran, waited, 9s});
  };
  // A server's thread that answers a request every 10 s, whose processors are contended.
  serves(9ms, 0ms);
  serves(30ms, 10ms);
  CHECK(!detector.contended());
  serves(4ms, 4ms);
  serves(30ms, 10ms);
  CHECK(detector.contended());
  for (int i = 0; i < 49; ++i) serves(40ms, 0ms);
  CHECK(detector.contended());
  serves(41ms, 0ms);
  CHECK(!detector.contended());
}

TEST_CASE("idle threads of OpenMP sleep while a BlockingOmpTeam exists") {
  if (worker_count() < 2) return test::skip("one processor");
  // Spins for a tenth of a second and more; LLVM's threads do unless told otherwise.
  run_alone("BlockingOmpTeam alone", "3000000");
}

TEST_CASE("BlockingOmpTeam alone", "[.]") {
  loop_in_parallel();
  CHECK(spent_after_a_loop() > 10);
  {
    const BlockingOmpTeam sleepy;
    CHECK(spent_after_a_loop() < 5);
  }
  CHECK(spent_after_a_loop() > 10);
}

TEST_CASE("contention by other programs is detected") {
  if (worker_count() < 2) return test::skip("one processor");
  if (!std::ifstream("/proc/thread-self/schedstat")) {
    return test::skip("the kernel keeps no account of waiting");
  }
  run_alone("contention alone", "");
}

TEST_CASE("contention alone", "[.]") {
  loop_in_parallel();
  const bench::BusyLoops neighbours(2 * static_cast<unsigned>(omp_get_num_procs()), 0);
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!cpus_are_contended() && std::chrono::steady_clock::now() < end) adapt_wait_policy();
  CHECK(cpus_are_contended());
}

}  // namespace wait_policy_test
