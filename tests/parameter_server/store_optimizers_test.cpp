#include <algorithm>
#include <functional>
#include <memory>

#include <tessera/framework/parameter_server/store/parameter_store.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include "tests/parameter_server/store_weights.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace store_optimizers_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using tessera::test::difference;
using tessera::test::make_weights;

namespace {

constexpr int servers = 2;

/// A partitioner that does not split the variable with a constraint.
int64_t parts_of(const Shape& shape, at::ScalarType) {
  return shape == Shape{4} ? 1 : std::min<int64_t>(3, shape[0]);
}

/// The gradients of a step; some weights have none, and sometimes only one has.
std::vector<at::Tensor> gradients_of(int step, const std::vector<Variable>& weights) {
  std::vector<at::Tensor> gradients(weights.size());
  for (size_t v = 0; v < weights.size(); ++v) {
    if (!weights[v].trainable() || (step == 3 && v != 2) || (step == 5 && v == 0)) continue;
    gradients[v] =
        test::small_integers(weights[v].shape(), step * 10 + static_cast<int64_t>(v), at::kDouble)
            .div(4);
  }
  return gradients;
}

at::Tensor rows_of(const at::Tensor& full, const Part& part) {
  return full.dim() == 0 ? full : full.narrow(0, part.rows.lo, part.rows.size());
}

/// The stores of several servers, each with its own program.
struct Stores {
  explicit Stores(
      const std::function<OptimizerHandle(const std::vector<Variable>&)>& make_optimizer) {
    for (int s = 0; s < servers; ++s) {
      const std::vector<Variable> weights = make_weights();
      plan = plan_parts(weights, parts_of, servers);
      stores.push_back(std::make_unique<ParameterStore>());
      stores.back()->add_group(0, weights, plan.of_server(s), make_optimizer(weights));
      std::vector<PartTensor> values;
      for (const Part& part : plan.of_server(s)) {
        values.push_back({part.number, 0, rows_of(weights[part.variable].value().full(), part)});
      }
      stores.back()->assign(0, values, 0);
    }
  }
  void push(int step, const std::vector<at::Tensor>& gradients) {
    for (int s = 0; s < servers; ++s) {
      std::vector<PartTensor> tensors;
      for (const Part& part : plan.of_server(s)) {
        const at::Tensor& gradient = gradients[part.variable];
        if (gradient.defined()) tensors.push_back({part.number, 0, rows_of(gradient, part)});
      }
      stores[static_cast<size_t>(s)]->push(0, {step + 1, 0, step + 1}, true, tensors);
    }
  }
  /// Returns what the stores hold of a variable, joined.
  at::Tensor joined(size_t variable, int kind) {
    std::vector<at::Tensor> rows;
    for (const Part& part : plan.parts) {
      if (part.variable != variable) continue;
      const auto pulled = stores[static_cast<size_t>(part.server)]->pull(0, 0, true).second;
      for (const PartTensor& tensor : pulled) {
        if (tensor.part == part.number && tensor.kind == kind) rows.push_back(tensor.tensor);
      }
    }
    return rows.size() == 1 ? rows[0] : at::cat(rows);
  }
  PartPlan plan;
  std::vector<std::unique_ptr<ParameterStore>> stores;
};

using MakeOptimizer = std::function<OptimizerHandle(const std::vector<Variable>&)>;

/// Empty if ten pushes equal ten ordinary steps on full variables; else the difference.
std::string wrong_steps(const MakeOptimizer& make_optimizer) {
  const c10::InferenceMode inference;
  Stores stores(make_optimizer);
  const std::vector<Variable> weights = make_weights();
  const OptimizerHandle optimizer = make_optimizer(weights);
  std::vector<Variable> trained(weights.begin(), weights.end() - 1);
  optimizer->build(trained);
  for (int step = 0; step < 10; ++step) {
    const std::vector<at::Tensor> wholes = gradients_of(step, weights);
    std::vector<DTensor> gradients(trained.size());
    for (size_t v = 0; v < trained.size(); ++v) {
      if (wholes[v].defined()) gradients[v] = pack(wholes[v], trained[v].layout());
    }
    optimizer->apply(gradients, trained);
    stores.push(step, wholes);
    for (size_t v = 0; v < trained.size(); ++v) {
      std::vector<Variable> state = optimizer->variables_of(trained[v]);
      state.insert(state.begin(), trained[v]);
      for (size_t k = 0; k < state.size(); ++k) {
        const std::string wrong = difference(stores.joined(v, static_cast<int>(k)),
                                             state[k].value().full(), 1e-12, 1e-12);
        if (!wrong.empty()) return str("step ", step, ", ", state[k].path(), ": ", wrong);
      }
    }
    for (const auto& store : stores.stores) {
      if (store->state(0).steps != optimizer->steps()) return str("steps at step ", step);
    }
  }
  return "";
}

MakeOptimizer with_config(const std::string& class_name, const Json& config) {
  return [=](const std::vector<Variable>& weights) {
    const OptimizerHandle made =
        optimizer_from_config({{"class_name", class_name}, {"config", config}});
    made->exclude_from_weight_decay({.var_list = {weights[4]}, .var_names = {"bias"}});
    return made;
  };
}

/// Whether updates of parts would differ from those of the full variable.
bool takes_no_parts(const std::string& name) {
  return name == "Adafactor" || name == "Lamb" || name == "Muon" || name == "ScheduleFreeAdamW";
}

}  // namespace

TEST_CASE("ten pushes of parts equal ten steps of every optimizer") {
  for (const std::string& name : optimizer_names()) {
    INFO(name);
    const MakeOptimizer make = with_config(name, {{"learning_rate", 0.1}});
    if (takes_no_parts(name)) {
      CHECK_THROWS_WITH(wrong_steps(make),
                        Catch::StartsWith("[" + name + "] the optimizer must be able to"));
    } else {
      CHECK(wrong_steps(make) == "");
    }
  }
}

TEST_CASE("ten pushes follow decay, its exclusions, averages and schedules") {
  const Json schedule = {
      {"class_name", "ExponentialDecay"},
      {"config", {{"initial_learning_rate", 0.1}, {"decay_steps", 2}, {"decay_rate", 0.5}}}};
  for (const std::string& name : optimizer_names()) {
    INFO(name);
    if (takes_no_parts(name)) continue;
    const Json averages = {{"learning_rate", schedule},
                           {"weight_decay", 0.3},
                           {"use_ema", true},
                           {"ema_momentum", 0.5}};
    CHECK(wrong_steps(with_config(name, averages)) == "");
    Json overwriting = averages;
    overwriting["ema_overwrite_frequency"] = 3;
    CHECK(wrong_steps(with_config(name, overwriting)) == "");
  }
}

}  // namespace store_optimizers_test
