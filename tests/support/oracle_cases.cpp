#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>

#include "tests/support/difference.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/oracle_local.hpp"
#include "tests/support/oracle_run.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

std::vector<at::Tensor> run_full(const OpInfo& info, const void* op,
                                 const std::vector<at::Tensor>& in) {
  std::vector<Ranges> ranges, out_ranges;
  for (const at::Tensor& t : in) ranges.push_back(full_range(t.sizes().vec()));
  for (const Spec& spec : info.infer(op, specs_of(in)))
    out_ranges.push_back(full_range(spec.shape));
  const Tensors out = run_local(info, op, in, ranges, out_ranges);
  return {out.begin(), out.end()};
}

/// Runs an operation that moves blocks itself on one device.
std::vector<at::Tensor> run_single(const OpInfo& info, const void* op,
                                   const std::vector<at::Tensor>& in) {
  static const Mesh mesh = virtual_mesh({1});
  std::vector<DTensor> values;
  for (const at::Tensor& t : in) {
    values.push_back(make_value(t, Layout::replicated(mesh, t.dim()), 0));
  }
  std::vector<at::Tensor> results;
  for (const DTensor& result : info.run(op, values)) results.push_back(result.blocks()[0]);
  return results;
}

OracleCase make_case(const OpInfo& info, const AnySample& sample, std::string name) {
  OracleCase c;
  c.name = std::move(name);
  c.inputs = sample.inputs;
  c.info = &info;
  c.op = sample.op;
  c.run = [&info, op = sample.op](const std::vector<DTensor>& in) {
    // Attributes are identified by their address, which serves as well as their hash.
    return dispatch(info, op.get(), reinterpret_cast<size_t>(op.get()), in);
  };
  c.reference = [&info, op = sample.op](const std::vector<at::Tensor>& in) {
    return info.moves_blocks ? run_single(info, op.get(), in) : run_full(info, op.get(), in);
  };
  return c;
}

/// Returns the sum over outputs of sum(output · cotangent).
double loss_of(const std::vector<at::Tensor>& out, const std::vector<at::Tensor>& cotangents) {
  double loss = 0;
  for (size_t o = 0; o < out.size(); ++o) {
    if (!cotangents[o].defined()) continue;
    loss += (out[o].to(at::kDouble) * cotangents[o].to(at::kDouble)).sum().item<double>();
  }
  return loss;
}

/// Returns central differences of the reference's loss.
at::Tensor finite_differences(const OracleCase& c, const Reference& ref, size_t input) {
  const c10::InferenceMode inference;
  std::vector<at::Tensor> in = ref.in;
  in[input] = ref.in[input].clone();
  const double step = ref.in[input].scalar_type() == at::kDouble ? 1e-5 : 1e-2;
  const at::Tensor gradient = at::zeros_like(in[input]);
  const at::Tensor flat = in[input].view(-1), slopes = gradient.view(-1);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double value = flat[i].item<double>();
    flat[i].fill_(value + step);
    const double above = loss_of(c.reference(in), ref.cotangents);
    flat[i].fill_(value - step);
    const double below = loss_of(c.reference(in), ref.cotangents);
    flat[i].fill_(value);
    slopes[i].fill_((above - below) / (2 * step));
  }
  return gradient;
}

/// Returns an input whose axes of one factor, of extent `before`, have extent `n`. Integers below
/// `before` are taken for indices along it.
SampleInput resized(SampleInput input, const std::vector<int>& factors, int factor, int64_t before,
                    int64_t n) {
  for (size_t a = 0; a < factors.size(); ++a) {
    if (factors[a] == factor) input.shape[a] = n;
  }
  if (input.dtype == at::kLong && input.hi == double(before)) {
    input.hi = double(std::max<int64_t>(n, 1));
  }
  return input;
}

/// Returns the extent of a factor's axes.
int64_t extent_of(const Rule& rule, const Specs& specs, int factor) {
  for (size_t i = 0; i < specs.size(); ++i) {
    for (size_t a = 0; a < rule.in[i].size(); ++a) {
      if (rule.in[i][a] == factor) return specs[i].shape[a];
    }
  }
  return 0;
}

void check_gradients(const OracleCase& c, Reference& ref, Failures& failures) {
  const Mesh one = virtual_mesh({1});
  std::vector<Layout> layouts;
  for (const at::Tensor& t : ref.in) layouts.push_back(Layout::replicated(one, t.dim()));
  Outcome outcome = run_case(c, ref, layouts, 0);
  if (!outcome.wrong.empty()) {
    failures.push_back(c.name + " on one device: " + outcome.wrong);
    return;
  }
  for (size_t i : sources_of(c)) {
    const at::Tensor slopes = finite_differences(c, ref, i);
    const double tolerance = ref.in[i].scalar_type() == at::kDouble ? 1e-6 : 3e-2;
    const std::string wrong = difference(outcome.gradients[i], slopes, tolerance, tolerance);
    if (!wrong.empty()) {
      failures.push_back(
          str(c.name, ": gradient of input ", i, " against finite differences: ", wrong));
    }
  }
  ref.gradients = outcome.gradients;
}

/// Returns the operations of the part that TESSERA_ORACLE_PART names, all without it. Neighbours,
/// which are alike and take similar time, are in different parts.
std::vector<const OpInfo*> part_of(const std::vector<const OpInfo*>& ops) {
  const char* text = std::getenv("TESSERA_ORACLE_PART");
  if (!text || !*text) return ops;
  size_t part = 0, parts = 0;
  if (std::sscanf(text, "%zu/%zu", &part, &parts) != 2 || part < 1 || part > parts) {
    throw ConfigError("TESSERA_ORACLE_PART", "a part, such as 1/2", text,
                      "name a part of that many, counted from 1");
  }
  std::vector<const OpInfo*> selected;
  for (size_t i = part - 1; i < ops.size(); i += parts) selected.push_back(ops[i]);
  return selected;
}

}  // namespace

OracleStats& OracleStats::operator+=(const OracleStats& other) {
  ops += other.ops;
  samples += other.samples;
  layouts += other.layouts;
  return *this;
}

std::string OracleStats::to_string() const {
  return str(ops, " ops, ", samples, " samples, ", layouts, " layouts");
}

std::string shapes_of(const OracleCase& c) {
  std::string text;
  for (const SampleInput& input : c.inputs) text += " " + tessera::to_string(input.shape);
  return text;
}

size_t limit_of_oracle(size_t daily) {
  const char* value = std::getenv("TESSERA_ORACLE");
  const std::string extent = value ? value : "";
  if (extent == "full") return std::numeric_limits<size_t>::max();
  return extent == "night" ? 24 * daily : daily;
}

std::vector<const OpInfo*> selected_ops() {
  const char* names = std::getenv("TESSERA_ORACLE_OP");
  if (!names || !*names) return part_of(op_registry());
  std::vector<const OpInfo*> selected;
  std::istringstream list{names};
  for (std::string name; std::getline(list, name, ',');) {
    selected.push_back(find_op(name));
    if (selected.back()) continue;
    throw ConfigError("TESSERA_ORACLE_OP", "names of operations", name, "see framework/ops");
  }
  return selected;
}

std::vector<OracleCase> op_cases(const OpInfo& info) {
  std::vector<OracleCase> cases;
  for (const AnySample& sample : info.samples()) {
    cases.push_back(make_case(info, sample, str(info.name, " ", cases.size())));
  }
  return cases;
}

std::vector<OracleCase> derived_cases(const OracleCase& c, const std::vector<int64_t>& extents) {
  std::vector<OracleCase> cases;
  if (!c.info || c.info->moves_blocks) return cases;
  Specs specs;
  for (const SampleInput& input : c.inputs) specs.push_back({input.shape, input.dtype});
  const Rule rule = c.info->rule(c.op.get(), specs);
  std::set<int64_t> extents_to_try = {0, 1};
  extents_to_try.insert(extents.begin(), extents.end());
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f] == FactorKind::window) continue;
    const int64_t before = extent_of(rule, specs, int(f));
    for (int64_t n : extents_to_try) {
      AnySample sample{{}, c.op};
      Specs changed;
      for (size_t i = 0; i < c.inputs.size(); ++i) {
        sample.inputs.push_back(resized(c.inputs[i], rule.in[i], int(f), before, n));
        changed.push_back({sample.inputs[i].shape, sample.inputs[i].dtype});
      }
      if (changed == specs) continue;
      try {
        c.info->infer(c.op.get(), changed);
      } catch (const Error&) {
        continue;
      }
      cases.push_back(make_case(*c.info, sample, str(c.name, " extent ", n)));
    }
  }
  return cases;
}

std::vector<size_t> sources_of(const OracleCase& c) {
  std::vector<size_t> sources;
  if (c.info && !c.info->differentiable) return sources;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (at::isFloatingType(c.inputs[i].dtype) && c.inputs[i].differentiable) sources.push_back(i);
  }
  return sources;
}

std::vector<at::Tensor> random_inputs(const OracleCase& c, uint64_t seed) {
  std::vector<at::Tensor> in;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    in.push_back(random_values(c.inputs[i], mix(text_seed(c.name), i, seed)));
  }
  return in;
}

Reference make_reference(const OracleCase& c, Failures& failures) {
  Reference ref;
  ref.in = random_inputs(c);
  {
    const c10::InferenceMode inference;
    ref.out = c.reference(ref.in);
  }
  for (size_t o = 0; o < ref.out.size(); ++o) {
    const at::ScalarType dtype = ref.out[o].scalar_type();
    const SampleInput like{ref.out[o].sizes().vec(), dtype};
    ref.cotangents.push_back(at::isFloatingType(dtype)
                                 ? random_values(like, mix(text_seed(c.name), 100 + o))
                                 : at::Tensor());
  }
  ref.gradients.resize(ref.in.size());
  check_gradients(c, ref, failures);
  return ref;
}

std::string joined(const Failures& failures) {
  std::string text;
  for (size_t i = 0; i < failures.size() && i < 10; ++i) text += failures[i] + "\n";
  if (failures.size() > 10) text += str("and ", failures.size() - 10, " more\n");
  return text;
}

}  // namespace tessera::test
