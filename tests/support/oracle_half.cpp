#include "tests/support/oracle_half.hpp"

#include <tessera/framework/base/error.hpp>

#include <ATen/ATen.h>

#include "tests/support/layouts.hpp"
#include "tests/support/oracle_run.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Returns the case with float64 inputs replaced by float16 or bfloat16 ones.
OracleCase in_half(OracleCase c, at::ScalarType half) {
  for (SampleInput& input : c.inputs) {
    if (input.dtype == at::kDouble) input.dtype = half;
  }
  c.name += half == at::kHalf ? " in float16" : " in bfloat16";
  return c;
}

at::Tensor in_half(const at::Tensor& tensor, at::ScalarType half) {
  return tensor.defined() && tensor.scalar_type() == at::kDouble ? tensor.to(half) : tensor;
}

/// Rounds to values that the dtype `half` can represent.
at::Tensor rounded(const at::Tensor& tensor, at::ScalarType half) {
  return in_half(tensor, half).to(tensor.scalar_type());
}

/// Returns layouts of the inputs, without partial ones, as their parts would be rounded too.
std::vector<std::vector<Layout>> some_layouts(const OracleCase& c, const Mesh& mesh, size_t limit) {
  std::vector<std::vector<Layout>> lists;
  for (const SampleInput& input : c.inputs) {
    lists.push_back(layouts_of(mesh, int64_t(input.shape.size()), {}));
  }
  return choices(lists, limit, text_seed(c.name + shapes_of(c)));
}

/// Returns float64 results for inputs that the dtype `half` can represent.
Reference exact_reference(const OracleCase& c, at::ScalarType half) {
  Reference ref;
  for (const at::Tensor& t : random_inputs(c)) ref.in.push_back(rounded(t, half));
  {
    const c10::InferenceMode inference;
    ref.out = c.reference(ref.in);
  }
  for (const at::Tensor& out : ref.out) {
    const SampleInput like{out.sizes().vec(), out.scalar_type()};
    ref.cotangents.push_back(at::isFloatingType(out.scalar_type())
                                 ? rounded(random_values(like, text_seed(c.name)), half)
                                 : at::Tensor());
  }
  ref.gradients.resize(ref.in.size());
  const Mesh one = virtual_mesh({1});
  ref.gradients = run_case(c, ref, some_layouts(c, one, 1)[0], 0).gradients;
  return ref;
}

/// Returns the reference in the dtypes that the operation has for inputs of dtype `half`.
Reference in_half(Reference ref, const OracleCase& small, at::ScalarType half) {
  for (auto* list : {&ref.in, &ref.gradients}) {
    for (at::Tensor& tensor : *list) tensor = in_half(tensor, half);
  }
  const auto like = [&] {
    const c10::InferenceMode inference;
    return small.reference(ref.in);
  }();
  for (size_t o = 0; o < like.size(); ++o) {
    for (at::Tensor* tensor : {&ref.out[o], &ref.cotangents[o]}) {
      if (tensor->defined()) *tensor = tensor->to(like[o].scalar_type());
    }
  }
  return ref;
}

}  // namespace

Failures check_half(const OpInfo& info, at::ScalarType half, size_t limit, OracleStats& stats) {
  Failures failures;
  for (const OracleCase& c : op_cases(info)) {
    const OracleCase small = in_half(c, half);
    const bool floating = std::any_of(c.inputs.begin(), c.inputs.end(),
                                      [](const auto& input) { return input.dtype == at::kDouble; });
    if (!floating) continue;
    ++stats.samples;
    Reference reference = in_half(exact_reference(c, half), small, half);
    // Results in float64, such as sums, are made of elements that were computed in float32.
    reference.min_tolerance = 1e-5;
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {3}, {2, 2}}) {
      for (const auto& layouts : some_layouts(small, virtual_mesh(sizes), limit)) {
        ++stats.layouts;
        const Outcome outcome = run_case(small, reference, layouts, 0);
        if (outcome.wrong.empty()) continue;
        failures.push_back(str(small.name, shapes_of(c), " on ", short_name(layouts[0].mesh()),
                               ", ", short_name(layouts), ": ", outcome.wrong));
        return failures;
      }
    }
  }
  return failures;
}

}  // namespace tessera::test
