// Steps and configurations of all optimizers against Keras, with every option: SGD, Adam, AdamW,
// Adamax, Nadam, RMSprop, Adagrad, Adadelta, Adafactor, Ftrl, Lamb, Lion, Muon, ScheduleFreeAdamW,
// LossScaleOptimizer and MultiOptimizer. What is particular to one optimizer is in the file of its
// name.
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <cmath>
#include <functional>
#include <mutex>

#include "tests/support/catch.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/optimizer_cases.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace keras_options_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

std::string case_name(const Json& golden) {
  const Json& serialized = golden.at("serialized");
  return serialized.at("class_name").get<std::string>() + serialized.at("config").dump();
}

/// Calls `check` with each case of Keras, and whether it is to be equal to Keras'.
void each_case(const std::function<void(const Json&, bool)>& check) {
  size_t row = 0;
  for (const Json& golden : keras_optimizers("cases")) {
    check(golden, !other_than_keras("keras_optimizers.json", "cases", row++));
  }
}

/// Empty if the steps of a case are right in these layouts.
std::string wrong_steps(const Json& golden, bool as_keras,
                        const std::vector<WeightLayouts>& weight_layouts) {
  return as_keras ? wrong_case(golden, weight_layouts) : wrong_accumulation(golden, weight_layouts);
}

/// Whether they are equal up to the rounding of float32, in which Keras keeps the rate.
bool same_config(const Json& actual, const Json& expected) {
  if (actual.is_number() && expected.is_number()) {
    const auto a = actual.get<double>(), b = expected.get<double>();
    return std::abs(a - b) <= 1e-7 * std::abs(b);
  }
  if (!actual.is_object() || !expected.is_object()) return actual == expected;
  bool same = actual.size() == expected.size();
  for (auto a = actual.begin(), b = expected.begin(); same && a != actual.end(); ++a, ++b) {
    same = a.key() == b.key() && same_config(a.value(), b.value());
  }
  return same;
}

}  // namespace

TEST_CASE("ten steps with every option match Keras on one device") {
  const Mesh one = create_mesh({{"batch", 1}});
  each_case([&](const Json& golden, bool as_keras) {
    INFO(case_name(golden));
    const std::vector<WeightLayouts> weight_layouts = mixed_weight_layouts(one, 1);
    CHECK((wrong_case(golden, weight_layouts) == "") == as_keras);
    CHECK(wrong_steps(golden, as_keras, weight_layouts) == "");
  });
}

TEST_CASE("ten steps with every option match Keras in every layout") {
  const std::vector<Mesh> meshes = {virtual_mesh({4}), virtual_mesh({2, 2}), virtual_mesh({2, 3}),
                                    virtual_mesh({2, 1, 2})};
  uint64_t seed = 0;
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Mesh& mesh : meshes) {
      each_case([&](const Json& golden, bool as_keras) {
        const std::vector<WeightLayouts> weight_layouts =
            mixed_weight_layouts(mesh, test::mix(++seed, 7));
        INFO(case_name(golden) << " " << short_name(mesh) << " " << test::to_string(policy) << " "
                               << test::to_string(weight_layouts));
        CHECK(wrong_steps(golden, as_keras, weight_layouts) == "");
      });
    }
  }
}

TEST_CASE("ten steps with every option match Keras in two processes") {
  const std::vector<MeshDims> meshes = {{{"x", 4}}, {{"x", 2}, {"y", 2}}, {{"x", 4}, {"y", 2}}};
  for (const MeshDims& dims : meshes) {
    CAPTURE(to_string(dims));
    const auto rank_run = [&](int, const std::shared_ptr<Communicator>& communicator) {
      const Mesh mesh = rank_mesh(dims, communicator);
      uint64_t seed = 0;
      each_case([&](const Json& golden, bool as_keras) {
        const std::vector<WeightLayouts> weight_layouts =
            mixed_weight_layouts(mesh, test::mix(++seed, 11));
        const std::string wrong = wrong_steps(golden, as_keras, weight_layouts);
        expect(wrong.empty(), case_name(golden) + " " + test::to_string(weight_layouts) + wrong);
      });
    };
    CHECK_NOTHROW(run_ranks(2, rank_run));
  }
}

TEST_CASE("configurations round-trip through Keras' JSON") {
  for (const Json& golden : keras_optimizers("cases")) {
    const Json& serialized = golden.at("serialized");
    INFO(serialized.dump());
    const Json again = optimizer_to_config(optimizer_from_config(serialized));
    INFO(again.dump());
    CHECK(same_config(again, serialized));
    CHECK(optimizer_to_config(optimizer_from_config(again)) == again);
  }
  for (const Json& golden : keras_optimizers("schedules")) {
    const Json& serialized = golden.at("serialized");
    INFO(serialized.dump());
    CHECK(same_config(LearningRate(schedule_from_config(serialized)).config(), serialized));
  }
}

}  // namespace keras_options_test
