#include "tests/support/function_check.hpp"

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

using FullTensors = std::vector<at::Tensor>;

constexpr size_t max_layouts = 40;
constexpr uint64_t seed = 20260;

/// Runs `check` on every mesh, policy and selection of layouts; returns its first failure, or "".
std::string first_wrong(const FullTensors& inputs, bool pending,
                        const std::function<std::string(const std::vector<DTensor>&)>& check) {
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{1}, {2}, {3}, {2, 2}}) {
    const Mesh mesh = virtual_mesh(sizes);
    std::vector<std::vector<Layout>> lists;
    for (const at::Tensor& input : inputs) {
      const bool sums = pending && at::isFloatingType(input.scalar_type());
      lists.push_back(
          layouts_of(mesh, input.dim(), sums ? std::vector{Reduce::sum} : std::vector<Reduce>{}));
    }
    for (const std::vector<Layout>& layouts : choices(lists, max_layouts, seed)) {
      for (BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
        const BlockPolicyScope scope(policy);
        std::vector<DTensor> values;
        for (size_t i = 0; i < inputs.size(); ++i) {
          values.push_back(make_value(inputs[i], layouts[i], mix(seed, i)));
        }
        const std::string wrong = check(values);
        if (wrong.empty()) continue;
        return str(short_name(mesh), " ", to_string(policy), " ", short_name(layouts), ": ", wrong);
      }
    }
  }
  return "";
}

/// Weights away from 0, so that every element of a result matters.
at::Tensor weights_for(const at::Tensor& result) {
  const SampleInput range{result.sizes().vec(), at::kDouble, 0.5, 2};
  return random_values(range, seed + 1);
}

std::vector<DTensor> on_one_device(const FullTensors& inputs) {
  const Mesh mesh = virtual_mesh({1});
  std::vector<DTensor> values;
  for (const at::Tensor& input : inputs) {
    values.push_back(pack(input, Layout::replicated(mesh, input.dim())));
  }
  return values;
}

double weighted(const FullTensors& inputs, const Function& function, const at::Tensor& weights) {
  return function(on_one_device(inputs)).full().mul(weights).sum().item<double>();
}

at::Tensor central_differences(FullTensors inputs, size_t which, const Function& function,
                               const at::Tensor& weights) {
  constexpr double step = 1e-5;
  const at::Tensor x = inputs[which].contiguous();
  const at::Tensor gradient = at::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    double side[2];
    for (int s : {0, 1}) {
      inputs[which] = x.clone();
      inputs[which].data_ptr<double>()[i] += s ? step : -step;
      side[s] = weighted(inputs, function, weights);
    }
    gradient.data_ptr<double>()[i] = (side[1] - side[0]) / (2 * step);
  }
  return gradient;
}

}  // namespace

std::string wrong_values(const FullTensors& inputs, const Function& function,
                         const at::Tensor& expected, double tolerance) {
  const c10::InferenceMode inference;
  return first_wrong(inputs, tolerance > 0, [&](const std::vector<DTensor>& values) {
    std::string wrong;
    const at::Tensor result = assemble(function(values), wrong);
    return wrong.empty() ? difference(result, expected, tolerance, tolerance) : wrong;
  });
}

std::string wrong_gradients(const FullTensors& inputs, const Function& function) {
  const c10::InferenceMode inference;
  const at::Tensor weights = weights_for(function(on_one_device(inputs)).full());
  std::vector<size_t> floating;
  FullTensors expected;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].scalar_type() != at::kDouble) continue;
    floating.push_back(i);
    expected.push_back(central_differences(inputs, i, function, weights));
  }
  return first_wrong(inputs, true, [&](const std::vector<DTensor>& values) -> std::string {
    GradientTape tape;
    std::vector<DTensor> sources;
    for (size_t i : floating) {
      tape.watch(values[i]);
      sources.push_back(values[i]);
    }
    const DTensor y = function(values);
    const DTensor dy = pack(weights, fetch_layout(y));
    const std::vector<DTensor> gradients = tape.gradient(y, sources, {.output_gradient = dy});
    for (size_t g = 0; g < gradients.size(); ++g) {
      if (!gradients[g].defined()) return str("no gradient of input ", floating[g]);
      if (!(gradients[g].layout() == fetch_layout(sources[g]))) {
        return str("gradient ", floating[g], " in layout ", gradients[g].layout().describe());
      }
      std::string wrong;
      const at::Tensor full = assemble(gradients[g], wrong);
      if (wrong.empty()) wrong = difference(full, expected[g], 1e-6, 1e-6);
      if (!wrong.empty()) return str("gradient ", floating[g], ": ", wrong);
    }
    return "";
  });
}

}  // namespace tessera::test
