#include <tessera/framework/parameter_server/store/store_client.hpp>

#include <ATen/ATen.h>

#include "tests/parameter_server/store_servers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace store_client_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using namespace tessera::test;

namespace {

at::Tensor values_of(const Shape& shape, int64_t seed, at::ScalarType dtype) {
  return small_integers(shape, seed, at::kDouble).to(dtype);
}

/// Variables of every dtype that models have, with empty ones and a scalar.
VariableGroup mixed_group(int servers, int64_t seed) {
  VariableGroup group;
  const auto add = [&](const char* path, const Shape& shape, at::ScalarType dtype, bool trained) {
    const auto number = static_cast<int64_t>(group.variables.size());
    group.variables.push_back(placed(path, values_of(shape, seed + number, dtype), trained));
  };
  add("a", {7, 3}, at::kFloat, true);
  add("b", {5}, at::kDouble, true);
  add("c", {}, at::kFloat, true);
  add("d", {4, 2}, at::kBFloat16, true);
  add("e", {3}, at::kLong, false);
  add("f", {0, 3}, at::kFloat, true);
  add("g", {2, 0}, at::kFloat, true);
  add("h", {}, at::kLong, false);
  // More than one message, split within rows.
  add("i", {3, 200001}, at::kFloat, true);
  group.optimizer = SGD(1.0, {.momentum = 0.5});
  group.plan = plan_parts(group.variables, FixedShardsPartitioner(3), servers);
  return group;
}

std::string wrong_values(const VariableGroup& actual, const VariableGroup& expected) {
  for (size_t v = 0; v < actual.variables.size(); ++v) {
    const std::string wrong =
        difference(actual.variables[v].value().full(), expected.variables[v].value().full());
    if (!wrong.empty()) return actual.variables[v].path() + ": " + wrong;
  }
  return "";
}

/// Returns a constant tensor for each variable that is trained, or that is not.
std::vector<at::Tensor> filled_like(const VariableGroup& group, double value, bool trained) {
  std::vector<at::Tensor> tensors;
  for (const Variable& variable : group.variables) {
    tensors.push_back(variable.trainable() == trained
                          ? at::full(variable.shape(), value, variable.dtype())
                          : at::Tensor());
  }
  return tensors;
}

}  // namespace

TEST_CASE("values, gradients and slots round-trip to servers, in every dtype") {
  for (int count : {1, 2, 3}) {
    CAPTURE(count);
    StoreServers servers(count, [&] { return mixed_group(count, 100); });
    const VariableGroup chief = mixed_group(count, 1), worker = mixed_group(count, 50);
    StoreClient from = servers.client(), to = servers.client();
    from.define(0, chief);
    from.assign(0, chief, true);
    to.pull(0, worker, false);
    CHECK(wrong_values(worker, chief) == "");

    // Momentum: m = -g, w += m, twice.
    for (int number : {0, 1}) {
      CHECK_FALSE(to.push(0, worker, {1, number, 1}, filled_like(worker, 2, true),
                          filled_like(worker, 3, false)));
    }
    CHECK(to.push(0, worker, {1, 0, 1}, filled_like(worker, 2, true), {}));
    from.pull(0, worker, true);
    CHECK(worker.optimizer->steps() == 2);
    for (size_t v = 0; v < chief.variables.size(); ++v) {
      const Variable& variable = worker.variables[v];
      CAPTURE(variable.path());
      const at::Tensor before = chief.variables[v].value().full();
      CHECK(difference(variable.value().full(), before + (variable.trainable() ? -5 : 6)) == "");
      if (!variable.trainable()) continue;
      CHECK(difference(worker.optimizer->variables_of(variable)[0].value().full(),
                       at::full_like(before, -3)) == "");
    }
    for (const StoreState& state : from.states(0)) CHECK(state.updates == 2);
  }
}

TEST_CASE("an assignment with slots sets the optimizer's state, one without does not") {
  StoreServers servers(2, [] { return small_group(2); });
  const auto make = [](double rate) {
    VariableGroup group = small_group(2);
    group.optimizer = SGD(rate);
    return group;
  };
  VariableGroup here = make(0.25);
  StoreClient client = servers.client();
  here.optimizer->set_steps(9);
  client.assign(0, here, false);
  CHECK(client.states(0)[1].steps == 0);
  client.push(0, here, {1, 0, 1}, {at::ones({4}), {}}, {});
  client.pull(0, here, false);
  CHECK(first(here) == -0.25);
  CHECK(here.optimizer->steps() == 9);
  client.assign(0, here, true);
  CHECK(client.states(0)[0].steps == 9);
  here.optimizer->set_learning_rate(2);
  client.set_learning_rate(0, here);
  client.push(0, here, {2, 0, 1}, {at::ones({4}), {}}, {});
  client.pull(0, here, true);
  CHECK(first(here) == -2.25);
  CHECK(here.optimizer->steps() == 10);
}

TEST_CASE("workers' variables may be sharded or in several blocks") {
  StoreServers servers(2, [] { return small_group(2); });
  StoreClient client = servers.client();
  const Mesh mesh = virtual_mesh({2});
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Layout& layout : all_layouts(mesh, 1)) {
      VariableGroup chief = small_group(2), worker = small_group(2);
      chief.variables[0].assign(pack(small_integers({4}, 3), chief.variables[0].layout()));
      worker.variables[0] = Variable("w", pack(at::zeros({4}), layout));
      client.assign(0, chief, false);
      client.pull(0, worker, false);
      CHECK(wrong_shards(worker.variables[0].value(), small_integers({4}, 3)) == "");
      client.assign(0, worker, false);
      client.pull(0, chief, false);
      CHECK(wrong_values(chief, worker) == "");
    }
  }
}

TEST_CASE("unchanged values are not sent again, unless they were assigned here") {
  StoreServers servers(1, [] { return small_group(1); });
  StoreClient client = servers.client();
  VariableGroup here = small_group(1);
  client.pull(0, here, false);
  const uint64_t before = here.variables[0].value().tag()->version;
  client.pull(0, here, false);
  CHECK(here.variables[0].value().tag()->version == before);
  here.variables[0].assign(pack(at::ones({4}), here.variables[0].layout()));
  client.pull(0, here, false);
  CHECK(first(here) == 0);
  client.push(0, here, {1, 0, 1}, {-at::ones({4}), {}}, {});
  client.pull(0, here, false);
  CHECK(first(here) == 1);
}

TEST_CASE("a pull writes in place") {
  StoreServers servers(2, [] { return small_group(2); });
  StoreClient client = servers.client();
  VariableGroup here = small_group(2);
  const void* memory = here.variables[0].value().blocks()[0].data_ptr();
  client.push(0, here, {1, 0, 1}, {-at::ones({4}), {}}, {});
  client.pull(0, here, false);
  CHECK(here.variables[0].value().blocks()[0].data_ptr() == memory);
  // A holder of the old values keeps them.
  const at::Tensor held = here.variables[0].value().blocks()[0];
  client.push(0, here, {2, 0, 1}, {-at::ones({4}), {}}, {});
  client.pull(0, here, false);
  CHECK(held[0].item<float>() == 1);
  CHECK(first(here) == 2);
}

TEST_CASE("a step counts on every server that trains and on no other") {
  const auto make = [] {
    VariableGroup group;
    group.variables = {placed("a", at::zeros({2})), placed("b", at::zeros({2})),
                       placed("n", at::zeros({2}), false)};
    group.optimizer = SGD(1.0);
    group.plan = plan_parts(group.variables, {}, 3);
    return group;
  };
  StoreServers servers(3, make);
  StoreClient client = servers.client();
  const VariableGroup here = make();
  client.push(0, here, {1, 0, 1}, {at::ones({2}), {}, {}}, {});
  std::vector<StoreState> states = client.states(0);
  CHECK(states[0].steps == 1);
  CHECK(states[1].steps == 1);
  CHECK(states[2].updates == 0);
  client.push(0, here, {1, 1, 1}, {}, {{}, {}, at::ones({2})});
  states = client.states(0);
  CHECK(states[1].updates == 1);
  CHECK(states[2].updates == 1);
  CHECK(states[2].steps == 0);
  CHECK_FALSE(client.push(0, here, {1, 2, 1}, {}, {}));
}

}  // namespace store_client_test
