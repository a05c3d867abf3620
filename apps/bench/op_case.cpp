#include "apps/bench/op_case.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::bench {

using namespace detail;

namespace {

Specs specs_of(const std::vector<SampleInput>& inputs) {
  Specs specs;
  for (const SampleInput& input : inputs) specs.push_back({input.shape, input.dtype});
  return specs;
}

/// Returns the sharding rule. That of an operation without one has one factor: the first axis of
/// its inputs.
Rule rule_of(const OpCase& c) {
  if (!c.info->moves_blocks) return c.info->rule(c.op.get(), specs_of(c.inputs));
  Rule rule;
  rule.factors = {FactorKind::pass};
  for (const SampleInput& input : c.inputs) {
    rule.in.emplace_back(input.shape.size(), Rule::none);
    if (!input.shape.empty()) rule.in.back()[0] = 0;
  }
  return rule;
}

/// Returns the number of elements of the largest input or output.
double elements(const OpCase& c) {
  Specs specs = specs_of(c.inputs);
  if (!c.info->moves_blocks) {
    for (const Spec& spec : c.info->infer(c.op.get(), specs)) specs.push_back(spec);
  }
  int64_t max = 0;
  for (const Spec& spec : specs) max = std::max(max, numel(spec.shape));
  return static_cast<double>(max);
}

/// Multiplies an extent, rounding to a multiple of 8, so that shards are equal.
int64_t times(int64_t extent, double ratio) {
  const double grown = static_cast<double>(extent) * ratio;
  return grown < 8 ? std::llround(grown) : std::llround(grown / 8) * 8;
}

/// Grows the axes of these factors by `ratio`. Integer inputs bounded by such an extent are taken
/// for indices along it, and their bound grows too.
OpCase grown(OpCase c, const Rule& rule, const std::set<int>& factors, double ratio) {
  std::vector<int64_t> extents;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Shape& shape = c.inputs[i].shape;
    for (size_t a = 0; a < shape.size(); ++a) {
      if (!factors.count(rule.in[i][a])) continue;
      extents.push_back(shape[a]);
      shape[a] = times(shape[a], ratio);
    }
  }
  for (SampleInput& input : c.inputs) {
    if (input.dtype != at::kLong || input.lo < 0) continue;
    for (int64_t extent : extents) {
      if (input.hi != static_cast<double>(extent)) continue;
      input.hi = static_cast<double>(times(extent, ratio));
      break;
    }
  }
  return c;
}

bool runs(const OpCase& c) {
  try {
    run_case(c, place_inputs(c, make_inputs(c), create_mesh({{"batch", 1}})));
    return true;
  } catch (const std::exception&) {
    // Attributes fix an extent, or values must fit another input.
    return false;
  }
}

/// Whether the extents fit each other and the attributes, and no tensor has more elements.
bool has_at_most(const OpCase& c, double most) {
  try {
    return elements(c) <= most;
  } catch (const Error&) {
    return false;  // e.g. heads of a query that rounding made no multiple of the key's
  }
}

OpCase scaled_case(const OpCase& c) {
  if (elements(c) == 0) return c;
  const Rule rule = rule_of(c);
  std::set<int> factors;
  for (const auto& axes : rule.in) {
    for (int factor : axes) {
      if (factor != Rule::none && runs(grown(c, rule, {factor}, 8))) factors.insert(factor);
    }
  }
  double ratio = 1;
  const double step = 1.1;
  for (double next = step; next < scaled_elements; next *= step) {
    if (has_at_most(grown(c, rule, factors, next), scaled_elements)) ratio = next;
  }
  OpCase large = grown(c, rule, factors, ratio);
  large.scaled = elements(large) > elements(c) && runs(large);
  return large.scaled ? large : c;
}

/// Returns the sharded axis of each input, -1 for none.
std::vector<int> sharded_axes(const OpCase& c) {
  const Rule rule = rule_of(c);
  std::vector<int> axes(c.inputs.size(), -1);
  for (size_t i = 0; i < rule.in.size(); ++i) {
    for (int factor : rule.in[i]) {
      if (factor == Rule::none || rule.factors[size_t(factor)] == FactorKind::replicated) continue;
      for (size_t j = 0; j < rule.in.size(); ++j) {
        const auto it = std::find(rule.in[j].begin(), rule.in[j].end(), factor);
        if (it != rule.in[j].end()) axes[j] = static_cast<int>(it - rule.in[j].begin());
      }
      return axes;
    }
  }
  return axes;
}

}  // namespace

OpCase make_case(const OpInfo& info, const AnySample& sample, bool scale) {
  OpCase c{&info, sample.op, sample.inputs, false};
  for (SampleInput& input : c.inputs) {
    if (input.dtype == at::kDouble) input.dtype = at::kFloat;
  }
  if (!runs(c)) c.inputs = sample.inputs;
  return scale ? scaled_case(c) : c;
}

std::vector<at::Tensor> make_inputs(const OpCase& c) {
  const c10::InferenceMode inference;
  std::vector<at::Tensor> tensors;
  for (const SampleInput& input : c.inputs) {
    const bool floating = at::isFloatingType(input.dtype);
    at::Tensor values = at::rand(input.shape, floating ? input.dtype : at::kDouble);
    values.mul_(input.hi - input.lo).add_(input.lo);
    tensors.push_back(floating ? values : values.floor_().to(input.dtype));
  }
  return tensors;
}

std::vector<DTensor> place_inputs(const OpCase& c, const std::vector<at::Tensor>& inputs,
                                  const Mesh& mesh) {
  const std::vector<int> sharded = sharded_axes(c);
  std::vector<DTensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::vector<int>> axes(size_t(inputs[i].dim()));
    if (sharded[i] >= 0) axes[size_t(sharded[i])] = {0};
    values.push_back(pack(inputs[i], Layout::from_axes(mesh, axes)));
  }
  return values;
}

void run_case(const OpCase& c, const std::vector<DTensor>& inputs) {
  // The address identifies the attributes as well as their hash.
  const size_t attributes = reinterpret_cast<size_t>(c.op.get());
  for (const DTensor& out : dispatch(*c.info, c.op.get(), attributes, inputs)) resolve(out);
}

std::string shapes_text(const OpCase& c) {
  std::string text;
  for (const SampleInput& input : c.inputs) {
    text += (text.empty() ? "" : " ") + to_string(input.shape);
  }
  return text;
}

}  // namespace tessera::bench
