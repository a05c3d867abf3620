#include <algorithm>

#include "tests/support/oracle_run.hpp"

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

double tolerance_of(at::ScalarType dtype) {
  if (dtype == at::kDouble) return 1e-9;
  if (dtype == at::kFloat) return 3e-5;
  if (dtype == at::kHalf) return 4e-3;
  return at::isFloatingType(dtype) ? 3e-2 : 0;
}

/// Empty if every shard of this process is the right slice of `expected`.
std::string wrong_locally(const DTensor& value, const at::Tensor& expected, double tolerance) {
  resolve(value);
  const std::vector<int64_t>& ids = value.mesh().local_ids();
  for (size_t i = 0; i < ids.size(); ++i) {
    const at::Tensor part = cut(
        expected, shard_intervals(value.layout(), value.shape(), value.mesh().coordinates(ids[i])));
    const std::string wrong = difference(value.local(int(i)), part, tolerance, tolerance);
    if (!wrong.empty()) return str("device ", ids[i], ": ", wrong);
  }
  return "";
}

class Runner {
 public:
  Runner(const OracleCase& c, const Reference& ref, const std::vector<Layout>& layouts,
         uint64_t seed, uint32_t parameters)
      : case_(c),
        ref_(ref),
        layouts_(layouts),
        seed_(seed),
        parameters_(parameters),
        sources_(sources_of(c)) {}

  Outcome run() {
    outcome_.gradients.resize(ref_.in.size());
    try {
      check();
    } catch (const std::exception& e) {
      outcome_.wrong = "throws: " + reason(e);
    }
    return std::move(outcome_);
  }

 private:
  void check() {
    std::vector<DTensor> in, watched;
    for (size_t i = 0; i < ref_.in.size(); ++i) {
      in.push_back(make_value(ref_.in[i], layouts_[i], mix(seed_, i)));
      if (is_parameter(i))
        in[i].set_tag(std::make_shared<VariableTag>(VariableTag{DTensor::next_id()}));
    }
    GradientTape tape;
    for (size_t i : sources_) {
      watched.push_back(in[i]);
      tape.watch(in[i]);
    }
    const std::vector<DTensor> out = case_.run(in);
    check_outputs(out);
    if (!sources_.empty() && outcome_.wrong.empty()) check_gradients(tape, out, watched);
    for (size_t i = 0; i < in.size(); ++i)
      compare(str("input ", i, " afterwards"), in[i], ref_.in[i]);
  }

  bool is_parameter(size_t i) const { return (parameters_ >> i & 1) && !layouts_[i].is_partial(); }

  void compare(const std::string& what, const DTensor& value, const at::Tensor& expected) {
    if (!outcome_.wrong.empty()) return;
    const double tolerance = std::max(tolerance_of(expected.scalar_type()), ref_.min_tolerance);
    std::string wrong;
    if (!value.mesh().is_local()) {
      wrong = wrong_locally(value, expected, tolerance);
    } else if (const at::Tensor full = assemble(value, wrong); wrong.empty()) {
      wrong = difference(full, expected, tolerance, tolerance);
    }
    if (!wrong.empty()) outcome_.wrong = str(what, " ", value.layout().describe(), ": ", wrong);
  }

  void check_outputs(const std::vector<DTensor>& out) {
    if (out.size() != ref_.out.size()) {
      outcome_.wrong = str(out.size(), " outputs, expected ", ref_.out.size());
    }
    for (size_t o = 0; o < out.size() && outcome_.wrong.empty(); ++o) {
      compare(str("output ", o), out[o], ref_.out[o]);
    }
  }

  void check_gradients(GradientTape& tape, const std::vector<DTensor>& out,
                       const std::vector<DTensor>& watched) {
    DTensor loss;
    for (size_t o = 0; o < out.size(); ++o) {
      const at::Tensor& cotangent = ref_.cotangents[o];
      if (!cotangent.defined()) continue;
      const std::vector<Layout> all = all_layouts(out[o].mesh(), cotangent.dim());
      const Layout& layout = all[mix(seed_, 1000 + o) % all.size()];
      const DTensor part = ops::sum(out[o] * make_value(cotangent, layout, 0));
      loss = loss.defined() ? loss + ops::cast(part, loss.dtype()) : part;
    }
    if (!loss.defined()) return;
    const std::vector<DTensor> gradients = tape.gradient(loss, watched);
    for (size_t s = 0; s < sources_.size(); ++s) check_gradient(sources_[s], gradients[s]);
  }

  void check_gradient(size_t i, const DTensor& gradient) {
    if (!outcome_.wrong.empty()) return;
    const std::string what = str("gradient of input ", i);
    if (!gradient.defined()) {
      outcome_.wrong = what + " is missing";
      return;
    }
    const Layout expected = layouts_[i].resolved();
    if (!is_parameter(i) && !(gradient.layout() == expected)) {
      outcome_.wrong =
          str(what, " is ", gradient.layout().describe(), ", its value ", expected.describe());
      return;
    }
    if (ref_.gradients[i].defined()) {
      compare(what, gradient, ref_.gradients[i]);
      return;
    }
    std::string wrong;
    outcome_.gradients[i] = assemble(gradient, wrong);
    if (!wrong.empty()) outcome_.wrong = str(what, ": ", wrong);
  }

  const OracleCase& case_;
  const Reference& ref_;
  const std::vector<Layout>& layouts_;
  uint64_t seed_;
  uint32_t parameters_;
  std::vector<size_t> sources_;
  Outcome outcome_;
};

}  // namespace

Outcome run_case(const OracleCase& c, const Reference& reference,
                 const std::vector<Layout>& layouts, uint64_t seed, uint32_t parameters) {
  return Runner(c, reference, layouts, seed, parameters).run();
}

Failures check_refusal(const OracleCase& c) {
  if (c.info->differentiable || c.info->stops_gradient) return {};
  const Mesh mesh = virtual_mesh({1});
  GradientTape tape;
  std::vector<DTensor> in;
  for (const at::Tensor& full : random_inputs(c)) {
    in.push_back(make_value(full, Layout::replicated(mesh, full.dim()), 0));
    tape.watch(in.back());
  }
  const DTensor out = c.run(in)[0];
  const auto floating = [](const DTensor& value) { return at::isFloatingType(value.dtype()); };
  if (!floating(out) || std::none_of(in.begin(), in.end(), floating)) return {};
  try {
    tape.gradient(out, in);
  } catch (const StateError& e) {
    if (std::string(e.what()).find(c.info->name) != std::string::npos) return {};
    return {c.name + " has no derivative, and does not say so: " + e.what()};
  }
  return {c.name + " has no derivative, yet gradient() does not throw"};
}

std::string reason(const std::exception& e) {
  const std::string text = e.what();
  return text.substr(0, text.find("\nException raised"));
}

Bytes measure_bytes(const OracleCase& c, const Reference& reference,
                    const std::vector<Layout>& layouts) {
  std::vector<DTensor> in, watched;
  GradientTape tape;
  for (size_t i = 0; i < reference.in.size(); ++i) {
    in.push_back(make_value(reference.in[i], layouts[i], 1));
  }
  for (size_t i : sources_of(c)) {
    watched.push_back(in[i]);
    tape.watch(in[i]);
  }
  CommLog forward, backward;
  std::vector<DTensor> out;
  {
    const CommLogScope scope(forward);
    out = c.run(in);
  }
  if (!watched.empty() && reference.cotangents[0].defined()) {
    GradientOptions options;
    options.output_gradient = make_value(reference.cotangents[0], out[0].layout().resolved(), 0);
    const CommLogScope scope(backward);
    tape.gradient(out[0], watched, options);
  }
  return {forward.received(), backward.received()};
}

}  // namespace tessera::test
