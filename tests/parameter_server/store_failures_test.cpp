#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/parameter_server/store_servers.hpp"
#include "tests/support/catch.hpp"

namespace store_failures_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("tasks with a different program are told the difference in one line") {
  StoreServers servers(2, [] { return small_group(2); });
  StoreClient client = servers.client();
  VariableGroup other = small_group(2);
  other.optimizer = Adam();
  CHECK_THROWS_WITH(client.define(0, other),
                    Contains("[ps 0 (127.0.0.1:") && Contains("Adam") && Contains("SGD"));
  other = small_group(2);
  other.variables[1] = placed("n", at::zeros({3}), false);
  other.plan = plan_parts(other.variables, FixedShardsPartitioner(2), 2);
  CHECK_THROWS_WITH(client.define(0, other),
                    Contains("n F32: (1,) on ps 0 (1,) on ps 1") && Contains("(2,) on ps 1"));
  // The learning rate may differ.
  other = small_group(2);
  other.optimizer = SGD(0.5);
  CHECK_NOTHROW(client.define(0, other));
  CHECK_THROWS_AS(servers.client("other job").pull(0, other, false), ConfigError);
  CHECK_THROWS_WITH(client.push(0, other, {0, 0, 0}, {at::ones({4}), {}}, {}),
                    Contains("[ps 0 (127.0.0.1:"));
}

TEST_CASE("an invalid push is refused before anything is sent") {
  StoreServers servers(1, [] { return small_group(1); });
  StoreClient client = servers.client();
  const VariableGroup here = small_group(1);
  CHECK_THROWS_AS(client.push(0, here, {1, 0, 1}, {at::ones({3}), {}}, {}), ShapeError);
  CHECK_THROWS_AS(client.push(0, here, {1, 0, 1}, {{}, at::ones({2})}, {}), ConfigError);
  CHECK_THROWS_AS(client.push(0, here, {1, 0, 1}, {at::ones({4})}, {}), ConfigError);
  CHECK(client.states(0)[0].updates == 0);
}

TEST_CASE("a server that is gone or silent is named") {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  StoreServer silent(1, small_group(2), 20s, [&](const std::function<void()>& work) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, 30s, [&] { return over; });
    work();
  });
  auto gone = std::make_unique<StoreServer>(0, small_group(2));
  StoreClient client("job", {gone->channel(), silent.channel()}, {"ps 0 (here)", "ps 1 (there)"},
                     500ms);
  const VariableGroup here = small_group(2);
  const auto lost = [&](const auto& call) {
    try {
      call();
    } catch (const LostServer& error) {
      CHECK_THAT(error.what(), !Contains("\n") && Contains("last checkpoint"));
      CHECK_THAT(error.what(), Contains(error.server() == 0 ? "[ps 0 (here)]" : "[ps 1 (there)]"));
      return error.server();
    }
    return -1;
  };
  CHECK_NOTHROW(client.pull(0, here, false));
  CHECK(lost([&] { client.push(0, here, {1, 0, 1}, {at::ones({4}), {}}, {}); }) == 1);
  gone.reset();
  CHECK(lost([&] { client.pull(0, here, false); }) == 0);
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
}

TEST_CASE("workers that push and pull concurrently lose no update") {
  StoreServers servers(2, [] { return small_group(2); });
  constexpr int workers = 3, each = 40;
  std::atomic<int> mixed = 0;
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < workers; ++w) {
      threads.emplace_back([&, w] {
        StoreClient client = servers.client();
        VariableGroup here = small_group(2);
        for (int i = 0; i < each; ++i) {
          client.push(0, here, {1 + w * each + i, 0, 0}, {-at::ones({4}), {}}, {{}, at::ones({2})});
          client.pull(0, here, false);
          const at::Tensor w_now = here.variables[0].value().full();
          const at::Tensor n_now = here.variables[1].value().full();
          // All parts of one server are from one moment.
          for (int server : {0, 1}) {
            const double weight = w_now[2 * server].item<double>();
            if (weight != n_now[server].item<double>() ||
                weight != w_now[2 * server + 1].item<double>()) {
              ++mixed;
            }
          }
        }
      });
    }
  }
  CHECK(mixed == 0);
  StoreClient client = servers.client();
  VariableGroup here = small_group(2);
  client.pull(0, here, false);
  CHECK(first(here) == workers * each);
}

}  // namespace store_failures_test
