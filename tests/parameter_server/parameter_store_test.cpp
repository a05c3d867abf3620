#include <tessera/framework/parameter_server/store/parameter_store.hpp>

#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include "tests/parameter_server/store_weights.hpp"
#include "tests/support/catch.hpp"

namespace parameter_store_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using Catch::Matchers::Contains;

namespace {

/// A weight trained by SGD with a rate of 1, and one that is not trained.
struct Small {
  explicit Small(Executor executor = {}) : store(std::move(executor)) {
    const std::vector<Variable> weights = test::make_weights();
    const PartPlan plan = plan_parts({weights[0], weights[5]}, {}, 1);
    store.add_group(0, {weights[0], weights[5]}, plan.parts, SGD(1.0));
  }
  std::pair<StoreState, bool> push(const PushId& id, double gradient, int64_t added) {
    return store.push(0, id, true,
                      {{0, 0, at::full({7, 3}, gradient, at::kDouble)},
                       {1, -1, at::full({3}, added, at::kLong)}});
  }
  double value() const { return store.pull(0, 0, false).second[0].tensor[0][0].item<double>(); }
  ParameterStore store;
};

/// Calls a function in the middle of an update.
class Interruption : public Constraint {
 public:
  explicit Interruption(std::function<void()> call) : call_(std::move(call)) {}
  std::string class_name() const override { return "Interruption"; }
  Json config() const override { return Json::object(); }
  DTensor operator()(const DTensor& weight) const override {
    call_();
    return weight;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

TEST_CASE("a push is applied once, however often it is sent") {
  Small small;
  CHECK_FALSE(small.push({1, 0, 1}, -1, 1).second);
  CHECK(small.push({1, 0, 1}, -1, 1).second);
  CHECK_FALSE(small.push({1, 1, 1}, -1, 1).second);
  CHECK_FALSE(small.push({2, 0, 1}, -1, 1).second);
  CHECK(small.push({1, 0, 1}, -1, 1).second);
  CHECK(small.value() == 3);
  // Closures below 3 are done: their pushes are late.
  CHECK_FALSE(small.push({5, 0, 3}, -1, 1).second);
  CHECK(small.push({2, 1, 2}, -1, 1).second);
  CHECK_FALSE(small.push({3, 0, 1}, -1, 1).second);
  const auto [state, repeated] = small.push({3, 0, 1}, -1, 1);
  CHECK(repeated);
  CHECK(state.updates == 5);
  CHECK(state.steps == 5);
  CHECK(small.value() == 5);
  CHECK(small.store.pull(0, 0, false).second[1].tensor[2].item<int64_t>() == 5);
}

TEST_CASE("a push without gradients counts no step") {
  Small small;
  small.store.push(0, {1, 0, 1}, false, {{0, -1, at::ones({7, 3}, at::kDouble)}});
  CHECK(small.store.state(0).steps == 0);
  CHECK(small.store.state(0).updates == 1);
  CHECK(small.value() == 1);
}

TEST_CASE("pulled values do not change, and values are updated in place") {
  Small small;
  const void* first = nullptr;
  {
    const auto [state, tensors] = small.store.pull(0, 0, false);
    first = tensors[0].tensor.data_ptr();
    small.push({1, 0, 1}, -1, 1);
    CHECK(tensors[0].tensor[0][0].item<double>() == 0);
    CHECK(small.value() == 1);
    CHECK(small.store.pull(0, state.version, false).second.size() == 2);
    CHECK(small.store.pull(0, small.store.state(0).version, false).second.empty());
  }
  const void* second = small.store.pull(0, 0, false).second[0].tensor.data_ptr();
  CHECK(second != first);
  small.push({2, 0, 1}, -1, 1);
  CHECK(small.store.pull(0, 0, false).second[0].tensor.data_ptr() == second);
}

TEST_CASE("NaN gradients are applied unchanged") {
  Small small;
  small.push({1, 0, 1}, std::nan(""), 1);
  CHECK(std::isnan(small.value()));
}

TEST_CASE("an invalid push or assignment changes nothing") {
  Small small;
  const auto refuse = [&](const PushId& id, bool step, const std::vector<PartTensor>& tensors) {
    CHECK_THROWS_AS(small.store.push(0, id, step, tensors), Error);
  };
  const at::Tensor good = at::ones({7, 3}, at::kDouble), count = at::ones({3}, at::kLong);
  const PushId id{1, 0, 1};
  refuse(id, true, {{0, 0, good}, {2, 0, good}});
  refuse(id, true, {{0, 0, good}, {-1, 0, good}});
  refuse(id, true, {{0, 0, good}, {1, 0, count}});
  refuse(id, true, {{0, 0, good}, {0, 0, good}});
  refuse(id, true, {{0, 0, good}, {0, 1, good}});
  refuse(id, true, {{0, 0, good}, {1, -2, count}});
  refuse(id, true, {{0, 0, good}, {1, -1, at::ones({4}, at::kLong)}});
  refuse(id, true, {{0, 0, good}, {1, -1, at::ones({3}, at::kInt)}});
  refuse(id, true, {{0, 0, good}, {1, -1, at::Tensor()}});
  refuse(id, false, {{0, 0, good}});
  refuse({0, 0, 0}, true, {{0, 0, good}});
  refuse({1, -1, 0}, true, {{0, 0, good}});
  refuse({1, 0, -1}, true, {{0, 0, good}});
  refuse({1, 0, 2}, true, {{0, 0, good}});
  CHECK_THROWS_AS(small.store.assign(0, {{0, 0, good}, {0, -1, good}}, 0), ConfigError);
  CHECK_THROWS_AS(small.store.assign(0, {{0, 0, good}, {0, 1, good}}, 0), ConfigError);
  CHECK_THROWS_AS(small.store.assign(0, {{0, 0, good}}, -2), ConfigError);
  CHECK_THROWS_AS(small.store.assign(0, {{0, 0, good}}, 0, -0.5), ConfigError);
  CHECK_THROWS_AS(small.store.assign(0, {{0, 0, good}}, 0, std::nan("")), ConfigError);
  CHECK_THROWS_AS(small.store.assign(0, {{0, 0, count}}, 0), Error);
  CHECK_THROWS_AS(small.store.push(1, id, true, {}), ConfigError);
  CHECK(small.store.state(0).version == 1);
  CHECK(small.value() == 0);
  // The id of a refused push can be used again.
  CHECK_FALSE(small.push(id, -1, 1).second);
}

TEST_CASE("a new learning rate applies to the next push") {
  Small small;
  small.store.assign(0, {}, -1, 0.25);
  small.push({1, 0, 1}, -1, 0);
  CHECK(small.value() == 0.25);
}

TEST_CASE("a pull waits for a running update") {
  ParameterStore store;
  std::future<std::pair<StoreState, std::vector<PartTensor>>> pulled;
  VariableSpec spec{"w", {2}, at::kFloat, {}};
  spec.constraint = ConstraintHandle(std::make_shared<Interruption>([&] {
    pulled = std::async(std::launch::async, [&] { return store.pull(0, 0, false); });
    CHECK(pulled.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
  }));
  const std::vector<Variable> weights = {Variable(spec)};
  store.add_group(0, weights, plan_parts(weights, {}, 1).parts, SGD(1.0));
  store.push(0, {1, 0, 1}, true, {{0, 0, at::ones({2})}, {0, -1, at::full({2}, 5, at::kFloat)}});
  const auto [state, tensors] = pulled.get();
  CHECK(state.steps == 1);
  CHECK(tensors[0].tensor[0].item<double>() == 4);
}

TEST_CASE("threads that push and pull concurrently see consistent states of all parts") {
  Small small;
  constexpr int pushers = 3, each = 100;
  std::atomic<int> applied = 0, mixed = 0;
  std::atomic<bool> over = false;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        while (!over) {
          const auto [state, tensors] = small.store.pull(0, 0, false);
          const double count = static_cast<double>(state.updates);
          if (!at::all(tensors[0].tensor == count).item<bool>()) ++mixed;
          if (!at::all(tensors[1].tensor == state.updates).item<bool>()) ++mixed;
          if (state.steps != state.updates) ++mixed;
        }
      });
    }
    std::vector<std::jthread> pushing;
    for (int t = 0; t < pushers; ++t) {
      pushing.emplace_back([&] {
        // All threads push the same ids: each id is applied for one of them.
        for (int i = 1; i <= each; ++i) {
          if (!small.push({i, i % 3, 0}, -1, 1).second) ++applied;
        }
      });
    }
    pushing.clear();
    over = true;
  }
  CHECK(applied == each);
  CHECK(mixed == 0);
  CHECK(small.value() == each);
}

TEST_CASE("the executor makes changes, and its errors reach the caller") {
  int calls = 0;
  bool over = false;
  Small small([&](const std::function<void()>& work) {
    if (over) throw CommError("the job", "goes on", "its end", "");
    ++calls;
    work();
  });
  small.push({1, 0, 1}, -1, 1);
  small.store.assign(0, {}, 7);
  CHECK(calls == 2);
  CHECK(small.store.state(0).steps == 7);
  over = true;
  CHECK_THROWS_AS(small.push({2, 0, 1}, -1, 1), CommError);
}

TEST_CASE("groups are waited for and added once") {
  ParameterStore store;
  CHECK_FALSE(store.wait_for_group(3, std::chrono::milliseconds(1)));
  std::jthread later([&] { store.add_group(3, {}, {}, {}); });
  CHECK(store.wait_for_group(3, std::chrono::seconds(30)));
  later.join();
  CHECK(store.has_group(3));
  CHECK_THROWS_AS(store.add_group(3, {}, {}, {}), StateError);
  CHECK_THROWS_WITH(store.state(4), Contains("group"));
}

}  // namespace parameter_store_test
