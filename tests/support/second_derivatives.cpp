#include "tests/support/second_derivatives.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>

#include "tests/support/difference.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

namespace {

using Tensors = std::vector<at::Tensor>;

/// Returns the layout whose first axis is sharded over the mesh's first dimension, the second over
/// the second.
Layout sharded_layout(const Mesh& mesh, int64_t rank) {
  LayoutSpec spec(size_t(rank), unsharded);
  for (size_t a = 0; a < std::min<size_t>(size_t(rank), size_t(mesh.rank())); ++a) {
    spec[a] = mesh.dims()[a].first;
  }
  return Layout(spec, mesh);
}

/// The gradient of a function of an operation's results, and that gradient's directional
/// derivative. The function adds up squares with random factors, so that linear operations have
/// second derivatives too.
class SecondDerivative {
 public:
  SecondDerivative(const Differentiated& function, const Tensors& in, const Mesh& mesh)
      : function_(function), mesh_(mesh) {
    for (size_t i : function.sources) {
      directions_.push_back(
          random_values({in[i].sizes().vec()}, mix(text_seed(function.name), 300 + i)));
    }
  }

  const Tensors& directions() const { return directions_; }

  /// Returns the first derivatives with respect to the sources.
  Tensors first(const Tensors& in) const {
    GradientTape tape;
    const auto [values, sources] = placed(in);
    for (const DTensor& source : sources) tape.watch(source);
    return in_full(tape.gradient(loss(values), sources, {.unconnected = Unconnected::zero}));
  }

  /// Returns the derivatives of sum(first derivative · direction).
  Tensors second(const Tensors& in) const {
    const auto [values, sources] = placed(in);
    GradientTape outer;
    for (const DTensor& source : sources) outer.watch(source);
    std::vector<DTensor> gradients;
    {
      GradientTape inner;
      for (const DTensor& source : sources) inner.watch(source);
      gradients = inner.gradient(loss(values), sources, {.unconnected = Unconnected::zero});
    }
    DTensor slope;
    for (size_t s = 0; s < gradients.size(); ++s) {
      const DTensor part = ops::sum(gradients[s] * value(directions_[s]));
      slope = slope.defined() ? slope + part : part;
    }
    return in_full(outer.gradient(slope, sources, {.unconnected = Unconnected::zero}));
  }

 private:
  DTensor value(const at::Tensor& full) const { return value_on(mesh_, full); }
  static DTensor value_on(const Mesh& mesh, const at::Tensor& full) {
    return make_value(full, sharded_layout(mesh, full.dim()), 0);
  }

  /// Returns all inputs, and those to differentiate by.
  std::pair<std::vector<DTensor>, std::vector<DTensor>> placed(const Tensors& in) const {
    std::vector<DTensor> values, sources;
    for (const at::Tensor& full : in) values.push_back(value(full));
    for (size_t i : function_.sources) sources.push_back(values[i]);
    return {values, sources};
  }

  DTensor loss(const std::vector<DTensor>& values) const {
    const std::vector<DTensor> out = function_.run(values);
    DTensor total;
    for (size_t o = 0; o < out.size(); ++o) {
      if (out[o].dtype() != at::kDouble) continue;
      const at::Tensor factors = random_values({out[o].shape()}, mix(text_seed(function_.name), o));
      const DTensor part = ops::sum(ops::square(out[o]) * value_on(out[o].mesh(), factors));
      total = total.defined() ? total + part : part;
    }
    return total;
  }

  static Tensors in_full(const std::vector<DTensor>& values) {
    Tensors full;
    for (const DTensor& one : values) full.push_back(one.full());
    return full;
  }

  const Differentiated& function_;
  Mesh mesh_;
  Tensors directions_;
};

/// Returns the first derivatives' central differences along the directions, which are the second
/// derivatives of the function: these are symmetric.
Tensors differences(const std::vector<size_t>& sources, const SecondDerivative& of,
                    const Tensors& in) {
  constexpr double step = 1e-5;
  const auto moved = [&](double by) {
    Tensors at = in;
    for (size_t s = 0; s < sources.size(); ++s) {
      at[sources[s]] = in[sources[s]] + of.directions()[s] * by;
    }
    return of.first(at);
  };
  const Tensors above = moved(step), below = moved(-step);
  Tensors slopes;
  for (size_t s = 0; s < above.size(); ++s) slopes.push_back((above[s] - below[s]) / (2 * step));
  return slopes;
}

/// Empty if the tensors are equal up to `tolerance` of their largest element, or of 1.
std::string apart(const Tensors& actual, const Tensors& expected, double tolerance) {
  for (size_t s = 0; s < expected.size(); ++s) {
    const double largest = std::max(1.0, expected[s].abs().max().item<double>());
    const std::string wrong = difference(actual[s], expected[s], tolerance, tolerance * largest);
    if (!wrong.empty()) return str("by source ", s, ": ", wrong);
  }
  return "";
}

}  // namespace

std::string wrong_second_derivatives(const Differentiated& function, const Tensors& inputs) {
  const SecondDerivative one(function, inputs, virtual_mesh({1}));
  const Tensors second = one.second(inputs);
  const std::string wrong = apart(second, differences(function.sources, one, inputs), 1e-6);
  if (!wrong.empty()) return "against finite differences: " + wrong;
  const SecondDerivative many(function, inputs, virtual_mesh({2, 2}));
  const std::string uneven = apart(many.second(inputs), second, 1e-9);
  return uneven.empty() ? "" : "on 2 by 2 devices: " + uneven;
}

}  // namespace tessera::test
