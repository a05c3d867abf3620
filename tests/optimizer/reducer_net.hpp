#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::test {

/// The layouts of a small network: x is {8, 4, 6}; `shared` is used twice and has its slots in the
/// layout `slots`.
struct ReducerCase {
  MeshDims dims;
  LayoutSpec x, shared, head;
  std::optional<LayoutSpec> slots = std::nullopt;
};

inline const AxisSpec all = unsharded;
inline const std::vector<ReducerCase> reducer_cases = {
    {{{"batch", 4}}, {"batch", all, all}, {all, all}, {all, all}},
    {{{"batch", 4}}, {"batch", all, all}, {all, all}, {all, all}, LayoutSpec{"batch", all}},
    {{{"batch", 4}}, {"batch", all, all}, {"batch", all}, {all, all}},
    {{{"batch", 2}, {"model", 2}}, {"batch", all, all}, {all, "model"}, {"model", all}},
    {{{"model", 2}, {"batch", 2}}, {"batch", all, all}, {all, "model"}, {"model", all}},
    {{{"batch", 2}, {"height", 2}}, {"batch", "height", all}, {all, all}, {all, all}},
    {{{"batch", 2}, {"height", 2}}, {"batch", "height", all}, {"height", all}, {all, all}},
    {{{"height", 2}, {"width", 2}}, {all, "height", "width"}, {all, all}, {all, "width"}},
    {{{"batch", 1}, {"model", 4}}, {"batch", all, all}, {all, "model"}, {all, all}},
};

inline Variable reducer_variable(const std::string& path, const Shape& shape, const Layout& layout,
                                 const std::optional<Layout>& slots = std::nullopt) {
  Variable made(VariableSpec{path, shape, at::kDouble, RandomUniform({.seed = 3})});
  made.place({shape, layout, std::nullopt, slots});
  return made;
}

/// Two layers that share one kernel, and a head.
struct ReducerNet {
  std::vector<Variable> variables;  ///< shared, bias, unused, head, frozen
  DTensor x;

  ReducerNet(const ReducerCase& c, const Mesh& mesh) {
    const auto slots = c.slots ? std::optional(Layout(*c.slots, mesh)) : std::nullopt;
    const Layout replicated = Layout::replicated(mesh, 1);
    variables = {reducer_variable("shared", {6, 6}, Layout(c.shared, mesh), slots),
                 reducer_variable("bias", {6}, replicated),
                 reducer_variable("unused", {5}, replicated),
                 reducer_variable("head", {6, 3}, Layout(c.head, mesh)),
                 reducer_variable("frozen", {3}, replicated)};
    variables.back().set_trainable(false);
    const at::Tensor rows = at::sin(at::arange(192, at::kDouble)).reshape({8, 4, 6});
    x = pack(rows, Layout(c.x, mesh));
  }

  DTensor loss() const {
    const auto layer = [](const DTensor& in, const Variable& kernel) {
      return ops::einsum("bhi,ij->bhj", {in, kernel.read()});
    };
    DTensor h = ops::tanh(layer(x, variables[0]) + variables[1].read());
    h = ops::tanh(layer(h, variables[0]));
    return ops::mean(ops::square(layer(h, variables[3]) + variables[4].read()));
  }

  std::vector<DTensor> values() const {
    std::vector<DTensor> list;
    for (const Variable& v : variables) list.push_back(v.value());
    return list;
  }
};

}  // namespace tessera::test
