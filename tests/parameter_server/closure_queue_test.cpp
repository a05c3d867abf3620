#include <tessera/framework/parameter_server/worker/closure_queue.hpp>

#include <atomic>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/parameter_server/internal/rpc_value.hpp>
#include <tessera/framework/parameter_server/job/job_name.hpp>
#include <tessera/framework/parameter_server/job/job_program.hpp>
#include <tessera/framework/parameter_server/job/main_thread_executor.hpp>

#include "tests/parameter_server/job_tasks.hpp"
#include "tests/support/catch.hpp"

namespace closure_queue_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using strategy::ClosureValue;

namespace {

ClosurePtr take(ClosureQueue& queue) {
  return queue.take([] { return true; }, std::stop_token());
}

std::exception_ptr error(const std::string& line) {
  return std::make_exception_ptr(StateError(line));
}

}  // namespace

TEST_CASE("a rescheduled closure runs next and is not cancelled") {
  ClosureQueue queue(1);
  for (int i = 0; i < 4; ++i) queue.add({});
  const ClosurePtr first = take(queue), second = take(queue);
  CHECK(queue.done_below() == 1);
  queue.finish(first, 0, {});
  CHECK(queue.done_below() == 2);
  queue.requeue(second);
  CHECK(queue.cancel_waiting() == 2);
  CHECK_FALSE(queue.idle());
  CHECK(take(queue)->number() == 2);
  queue.finish(second, 0, {});
  CHECK(queue.idle());
  CHECK(queue.done_below() == 5);
  CHECK(queue.next_done()->number() == 1);
  CHECK(queue.next_done()->number() == 2);
  CHECK(queue.next_done() == nullptr);
  CHECK(queue.counts().rescheduled == 1);
}

TEST_CASE("an error waits for running closures, is thrown once and cancels the waiting ones") {
  ClosureQueue queue(2);
  const ClosurePtr failed = queue.add({}), running = queue.add({}), waiting = queue.add({});
  take(queue);
  take(queue);
  queue.fail(failed, error("first"));
  CHECK_THROWS_WITH(queue.wait(failed), "first");
  CHECK_THROWS_WITH(queue.wait(waiting), Contains("cancelled"));
  CHECK_FALSE(queue.ready(running));
  queue.requeue(running);
  CHECK_THROWS_WITH(queue.wait(running), Contains("is lost"));
  CHECK_THROWS_WITH(queue.join(), "first");
  queue.join();
  CHECK(queue.add({})->number() == 4);
  queue.end(error("over"));
  CHECK_THROWS_WITH(queue.join(), "over");
  CHECK_THROWS_WITH(queue.add({}), "over");
  CHECK_THROWS_WITH(queue.next_done(), "over");
  CHECK_THROWS_WITH(queue.wait(waiting), Contains("cancelled"));
}

TEST_CASE("a closure cancelled by an error does not run again after the error was thrown") {
  ClosureQueue queue(2);
  const ClosurePtr failed = queue.add({}), running = queue.add({});
  take(queue);
  take(queue);
  queue.fail(failed, error("first"));
  // The program sees the error and continues before the other worker is lost.
  CHECK_THROWS_WITH(queue.add({}), "first");
  const ClosurePtr next = queue.add({});
  queue.requeue(running);
  CHECK_THROWS_WITH(queue.wait(running), Contains("is lost"));
  CHECK(take(queue) == next);
  // The error does not cancel closures that were added later.
  queue.requeue(next);
  CHECK(take(queue) == next);
  queue.finish(next, 0, {});
  CHECK(queue.idle());
}

TEST_CASE("values round-trip through messages; inconsistent messages are refused") {
  const ClosureValue value{
      .json = {{"a", 0.1}},
      .tensors = {at::arange(6).reshape({2, 3}), at::zeros({0, 4}), at::tensor(1.5, at::kDouble)}};
  const ClosureValue back = from_message(to_message(value, "test"), "test");
  CHECK(back.json == value.json);
  for (size_t i = 0; i < value.tensors.size(); ++i) {
    CHECK(at::equal(back.tensors.at(i), value.tensors[i]));
    CHECK(back.tensors[i].dtype() == value.tensors[i].dtype());
  }
  CHECK_THROWS_AS(to_message({.tensors = {at::Tensor()}}, "test"), ConfigError);

  const auto refused = [](const std::string& dtype, std::vector<int64_t> shape, size_t bytes) {
    rpc::Value message;
    rpc::Tensor& tensor = *message.add_tensors();
    tensor.set_dtype(dtype);
    for (int64_t extent : shape) tensor.add_shape(extent);
    tensor.set_data(std::string(bytes, '\0'));
    CHECK_THROWS_AS(from_message(message, "test"), ConfigError);
  };
  refused("F33", {2}, 8);
  refused("F32", {2}, 7);
  refused("F32", {-1}, 0);
  refused("F32", {int64_t{1} << 62, int64_t{1} << 62}, 0);
  refused("F32", {int64_t{1} << 40, 0, int64_t{1} << 40}, 0);
  refused("F32", std::vector<int64_t>(65, 1), 4);
  rpc::Value message;
  message.set_json("{");
  CHECK_THROWS_AS(from_message(message, "test"), ConfigError);
}

TEST_CASE("the first difference between programs is reported") {
  const JobProgram full{{"a", "b"}, {"data"}, {"SGD kernel (2, 3)", "Adam bias"}};
  CHECK_FALSE(difference(program_from_text(to_text(full)), full, true));
  JobProgram less = full;
  less.groups.pop_back();
  CHECK_FALSE(difference(full, less, true));
  less.functions = {"a"};
  CHECK_FALSE(difference(full, less, false));
  CHECK_THAT(difference(full, less, true).value(), Contains("no function \"b\" here"));
  less.functions = full.functions;
  less.datasets = {"other"};
  CHECK_THAT(difference(full, less, true).value(), Contains("no dataset \"data\" here"));
  less.groups = {"SGD kernel (2, 4)"};
  CHECK_THAT(difference(full, less, false).value(),
             Contains("group 0 of variables has \"4)\" here, \"3)\" there"));
  CHECK_THROWS_AS(program_from_text("{\"functions\": 1}"), ConfigError);
}

TEST_CASE("the main thread does its fit's work and refuses late calls") {
  MainThreadExecutor main;
  std::atomic<int> done{0};
  const auto from_thread = [&](int phase) {
    return std::async(std::launch::async, [&main, &done, phase] {
      return main.run([&] { ++done; }, [] { return false; }, phase);
    });
  };
  auto earlier = from_thread(1), now = from_thread(2), later = from_thread(3);
  int served = 0;
  for (int i = 0; i < 100 && served < 1; ++i) served += main.serve_one(2, 100ms) ? 1 : 0;
  CHECK(now.get());
  for (int i = 0; i < 100 && earlier.wait_for(0s) != std::future_status::ready; ++i) {
    CHECK_FALSE(main.serve_one(2, 10ms));
  }
  CHECK_FALSE(earlier.get());
  CHECK(done == 1);
  main.leave();
  CHECK_FALSE(later.get());
  CHECK_FALSE(main.run([] {}, [] { return false; }));
  MainThreadExecutor idle;
  CHECK_FALSE(idle.run([] {}, [] { return true; }));
}

TEST_CASE("names of jobs are 16 hexadecimal digits") {
  const std::string name = make_job_name();
  CHECK(is_job_name(name));
  CHECK(name != make_job_name());
  CHECK_FALSE(is_job_name(name.substr(1)));
  CHECK_FALSE(is_job_name("0123456789abcdeg"));
}

}  // namespace closure_queue_test
