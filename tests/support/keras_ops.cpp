#include "tests/support/keras_ops.hpp"

#include <ATen/ATen.h>

#include <set>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/second_derivatives.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test::keras_ops {

using namespace detail;

namespace {

bool is_given(const Json& attributes, const std::string& key) {
  return attributes.contains(key) && !attributes.at(key).is_null();
}

/// Empty if the tensor is the golden's; indices are int64 instead of int32.
std::string unlike_keras(const at::Tensor& actual, const Json& golden) {
  const at::Tensor expected = input_tensor(golden);
  if (at::isFloatingType(expected.scalar_type()) && actual.dtype() == expected.dtype()) {
    return unlike(actual, golden);
  }
  const bool is_index = actual.scalar_type() == at::kLong;
  return difference(is_index ? actual.to(expected.scalar_type()) : actual, expected);
}

/// Checks the value and the gradients of a case for packed inputs.
void check_packed_inputs(const Calls& calls, const Json& golden, const Values& inputs) {
  GradientTape tape;
  Values sources;
  for (const DTensor& x : inputs) {
    if (!at::isFloatingType(x.dtype())) continue;
    tape.watch(x);
    sources.push_back(x);
  }
  const DTensor y = calls.at(golden.at("name"))(inputs, golden.at("attributes"));
  CHECK(unlike_keras(y.full(), golden.at("output")) == "");
  if (!golden.contains("gradients")) return;
  const at::Tensor factors = upstream(at::empty(y.shape(), y.dtype()));
  const DTensor loss = ops::sum(y * pack(factors, Layout::replicated(y.mesh(), y.rank())));
  const Values gradients = tape.gradient(loss, sources);
  REQUIRE(gradients.size() == golden.at("gradients").size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    REQUIRE(gradients[i].defined());
    CHECK(gradients[i].layout() == sources[i].layout());
    CHECK(unlike(gradients[i].full(), golden.at("gradients")[i]) == "");
  }
}

/// Checks the second derivatives of a case that has gradients, in float64. Attention has none.
void check_second(const Calls& calls, const Json& golden) {
  if (!golden.contains("gradients") || golden.at("name") == "dot_product_attention") return;
  std::vector<at::Tensor> inputs = input_tensors(golden.at("inputs"));
  std::vector<size_t> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!at::isFloatingType(inputs[i].scalar_type())) continue;
    // Some functions jump at 0.
    inputs[i] = inputs[i].to(at::kDouble).masked_fill(inputs[i] == 0, 0.3);
    sources.push_back(i);
  }
  const auto run = [&](const Values& x) {
    return Values{calls.at(golden.at("name"))(x, golden.at("attributes"))};
  };
  const std::string name = golden.dump();
  CHECK(wrong_second_derivatives({.run = run, .sources = sources, .name = name}, inputs) == "");
}

/// Checks a function of tensors in layouts of its inputs, others in layouts of the result.
void check_on_mesh(const Calls& calls, const Mesh& mesh, const Json& golden) {
  const DefaultMeshScope scope(mesh);
  const std::vector<at::Tensor> tensors = input_tensors(golden.at("inputs"));
  if (tensors.empty()) {
    const auto rank = static_cast<int64_t>(golden.at("output").at("shape").size());
    for (const Layout& layout : all_layouts(mesh, rank)) {
      const auto make = [&] { return calls.at(golden.at("name"))({}, golden.at("attributes")); };
      const DTensor y = call_with_layout(make, layout);
      CHECK(y.layout() == layout);
      CHECK(unlike_keras(y.full(), golden.at("output")) == "");
    }
    return;
  }
  std::vector<std::vector<Layout>> lists;
  for (const at::Tensor& x : tensors) lists.push_back(layouts_of(mesh, x.dim(), {}));
  for (const std::vector<Layout>& layouts : choices(lists, 64, text_seed(golden.dump()))) {
    INFO(short_name(mesh) << ": " << short_name(layouts));
    Values inputs;
    for (size_t i = 0; i < tensors.size(); ++i) inputs.push_back(pack(tensors[i], layouts[i]));
    check_packed_inputs(calls, golden, inputs);
  }
}

}  // namespace

std::vector<int64_t> integers(const Json& attributes, const std::string& key) {
  if (!attributes.contains(key)) return {};
  const Json& value = attributes.at(key);
  if (value.is_array()) return value.get<std::vector<int64_t>>();
  return {value.get<int64_t>()};
}

int64_t integer(const Json& attributes, const std::string& key, int64_t otherwise) {
  return option(attributes, key, otherwise);
}

std::optional<int64_t> maybe_integer(const Json& attributes, const std::string& key) {
  if (!is_given(attributes, key)) return std::nullopt;
  return attributes.at(key).get<int64_t>();
}

std::optional<double> number(const Json& attributes, const std::string& key) {
  if (!is_given(attributes, key)) return std::nullopt;
  return attributes.at(key).get<double>();
}

std::string text(const Json& attributes, const std::string& key, const std::string& otherwise) {
  return is_given(attributes, key) ? attributes.at(key).get<std::string>() : otherwise;
}

void check_functions(const std::string& file, const std::vector<std::string>& groups,
                     const Calls& calls) {
  std::set<std::string> seen;
  for (const std::string& group : groups) {
    for (const Json& golden : golden_part(file, group)) {
      INFO(golden.at("name") << golden.at("attributes").dump());
      seen.insert(golden.at("name").get<std::string>());
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2}, {4}, {2, 2}}) {
        check_on_mesh(calls, virtual_mesh(sizes), golden);
      }
      check_second(calls, golden);
    }
  }
  CHECK(seen.size() == calls.size());
}

}  // namespace tessera::test::keras_ops
