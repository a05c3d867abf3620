// Second derivatives of every registered operation, against finite differences of the first.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/second_derivatives.hpp"

namespace second_derivatives_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Names = std::set<std::string>;

/// Operations whose gradient is a fused kernel that has no gradient: attention, the forward and
/// backward passes of CTC, and recurrences, which layers compute step by step under two tapes.
const Names only_first = {"attention",          "ctc_loss",
                          "linear_class_terms", "linear_softmax_cross_entropy",
                          "recurrence",         "ring_attention"};

/// The gradients of other operations, whose second derivatives are third ones of these; the oracle
/// checks their first ones.
bool is_gradient(const std::string& name) {
  constexpr std::string_view suffix = "_grad";
  return name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
}

/// Returns the first sample of an operation that has float64 inputs to differentiate by; without
/// inputs if there is none.
OracleCase first_case(const OpInfo& info) {
  for (const OracleCase& c : op_cases(info)) {
    const std::vector<size_t> sources = sources_of(c);
    const auto is_double = [&](size_t i) {
      return c.inputs[i].dtype == at::kDouble && numel(c.inputs[i].shape) > 0;
    };
    if (!sources.empty() && std::all_of(sources.begin(), sources.end(), is_double)) return c;
  }
  return {};
}

/// Empty if the second derivatives of a case are right.
std::string wrong_second(const OracleCase& c) {
  return wrong_second_derivatives({.run = c.run, .sources = sources_of(c), .name = c.name},
                                  random_inputs(c));
}

}  // namespace

TEST_CASE("every operation with a gradient has the second derivative of finite differences") {
  Names refused;
  size_t checked = 0;
  for (const OpInfo* info : op_registry()) {
    const std::string name(info->name);
    if (is_gradient(name) || info->stops_gradient || !info->differentiable) continue;
    const OracleCase c = first_case(*info);
    if (c.inputs.empty()) continue;
    INFO(name);
    try {
      const std::string wrong = wrong_second(c);
      CHECK(wrong == "");
      ++checked;
    } catch (const StateError& e) {
      CHECK_THAT(e.what(), Catch::Contains("has a derivative"));
      refused.insert(name);
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
  CHECK(refused == only_first);
  CHECK(checked > 90);
}

}  // namespace second_derivatives_test
