#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/reduce.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"

namespace planted_bugs_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// An exponential whose rule lets partial sums pass.
struct PassingExp {
  static constexpr std::string_view name = "passing_exp";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const { return broadcast_rule(in).passing(Passes::sums); }
  Tensors forward(const LocalArgs& in) const { return {in[0].exp()}; }
  static constexpr Saves saves = outputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {dy[0] * saved.out()};
  }
  static Samples<PassingExp> samples() { return {{{{{3, 5}}}}}; }
};

/// x + bias that lets a partial sum in x alone pass: the bias is added once per device.
struct BiasPerAddend {
  static constexpr std::string_view name = "bias_per_addend";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {{broadcast_shape(name, in), in[0].dtype}}; }
  Rule rule(const Specs& in) const { return broadcast_rule(in).passing(Passes::sums, {0}); }
  Tensors forward(const LocalArgs& in) const { return {in[0] + in[1]}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {dy[0], sum_to(dy[0], saved.shape(1))};
  }
  static Samples<BiasPerAddend> samples() { return {{{{{4, 3}}, {{3}}}}}; }
};

/// x + bias whose gradient does not reduce over the broadcast axis.
struct ForgottenSum {
  static constexpr std::string_view name = "forgotten_sum";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {{broadcast_shape(name, in), in[0].dtype}}; }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {in[0] + in[1]}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const { return {dy[0], dy[0]}; }
  static Samples<ForgottenSum> samples() { return {{{{{4, 3}}, {{3}}}}}; }
};

/// y[i] = x[i-1] + x[i] + x[i+1], zeros beyond the ends. The window requests `missing` rows too
/// few; forward pads with zeros, so that one device shows no difference.
template <int missing>
struct Neighbours {
  static constexpr std::string_view name = missing ? "short_window" : "right_window";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule(in);
    rule.factors[0] = FactorKind::window;
    return rule;
  }
  Interval window(size_t, int64_t, Interval out, const Specs& in) const {
    const int64_t n = in[0].shape[0];
    return {out.lo - 1, std::min(out.hi + 1, n + 1) - (out.hi < n ? missing : 0)};
  }
  Tensors forward(const LocalArgs& in) const {
    const int64_t rows = in.out_range(0).size(), lacking = rows + 2 - in[0].size(0);
    at::Tensor x = in[0];
    if (lacking > 0) x = at::cat({x, at::zeros({lacking, x.size(1)}, x.options())});
    return {x.narrow(0, 0, rows) + x.narrow(0, 1, rows) + x.narrow(0, 2, rows)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    return {run_op(Neighbours<0>(), {dy[0]})};
  }
  static Samples<Neighbours> samples() { return {{{{{5, 2}}}}, {{{{3, 2}}}}}; }
};

/// A maximum over rows that adds the maxima of its shards.
struct AddedMaxima {
  static constexpr std::string_view name = "added_maxima";
  static constexpr bool stops_gradient = true;
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    if (in[0].shape[0] == 0) throw ShapeError("added_maxima", "rows", "none", "");
    return {{{in[0].shape[1]}, in[0].dtype}};
  }
  Rule rule(const Specs&) const { return Rule::parse("m n -> n"); }
  Tensors forward(const LocalArgs& in) const { return {in[0].amax(0)}; }
  static Samples<AddedMaxima> samples() { return {{{{{4, 3}}}}}; }
};

/// x · scale whose gradient for the scale is the largest row instead of the sum.
struct LargestRow {
  static constexpr std::string_view name = "largest_row";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {{broadcast_shape(name, in), in[0].dtype}}; }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {in[0] * in[1]}; }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {dy[0] * saved.in(1), ops::max(dy[0] * saved.in(0), {0})};
  }
  static Samples<LargestRow> samples() { return {{{{{4, 3}}, {{3}}}}}; }
};

/// A gradient that is missing.
struct LostGradient {
  static constexpr std::string_view name = "lost_gradient";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {in[0] * in[1]}; }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {dy[0] * saved.in(1), DTensor()};
  }
  static Samples<LostGradient> samples() { return {{{{{3, 2}}, {{3, 2}}}}}; }
};

/// A negation that gathers needlessly, one whose result ignores its block's offset, and one that
/// writes into its input.
enum class Fault { none, gathers, counts_from_zero, writes };
template <Fault fault>
struct FaultyNeg {
  static constexpr std::string_view name = "faulty_neg";
  static constexpr bool stops_gradient = true;
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule(in);
    if (fault == Fault::gathers) rule.factors[0] = FactorKind::replicated;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    if (fault == Fault::writes) return {at::Tensor(in[0]).neg_()};
    if (fault != Fault::counts_from_zero) return {-in[0]};
    const int64_t rows = in[0].size(0);
    return {at::arange(rows, in[0].options()).view({rows, 1}) - in[0]};
  }
  static Samples<FaultyNeg> samples() { return {{{{{4, 3}}}}}; }
};

template <class Op>
std::string failures_of() {
  OracleStats stats;
  std::string text;
  for (const std::string& failure : check_op(op_info<Op>(), stats)) text += failure + "\n";
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the oracle catches a partial sum that passes through exp") {
  CHECK(contains(failures_of<PassingExp>(), "+sum over x: output 0"));
}

TEST_CASE("the oracle catches a bias that is added to every partial sum") {
  CHECK(contains(failures_of<BiasPerAddend>(), "+sum over x , (-): output 0"));
}

TEST_CASE("the oracle catches a window that is one row short") {
  CHECK(failures_of<Neighbours<0>>() == "");
  CHECK(contains(failures_of<Neighbours<1>>(), "(x, -): output 0"));
}

TEST_CASE("the oracle catches a gradient that forgets a broadcast") {
  CHECK(contains(failures_of<ForgottenSum>(), "forgotten_sum 0 on one device: throws"));
}

TEST_CASE("the oracle catches a gradient of wrong numbers") {
  CHECK(contains(failures_of<LargestRow>(), "gradient of input 1 against finite differences"));
}

TEST_CASE("the oracle catches a gradient that is missing") {
  CHECK(contains(failures_of<LostGradient>(), "gradient of input 1 is missing"));
}

TEST_CASE("the oracle catches maxima that are added") {
  CHECK(contains(failures_of<AddedMaxima>(), "(x, -): output 0"));
}

TEST_CASE("the oracle catches a rule that is missing") {
  CHECK(failures_of<FaultyNeg<Fault::none>>() == "");
  CHECK(contains(failures_of<FaultyNeg<Fault::gathers>>(), "missing rule"));
}

TEST_CASE("the oracle catches a block that ignores its offset") {
  const std::string failures = failures_of<FaultyNeg<Fault::counts_from_zero>>();
  CHECK(contains(failures, "(x, -): output 0"));
  CHECK(contains(failures, "wrong rule"));
}

TEST_CASE("the oracle catches an operation that changes its input") {
  CHECK(contains(failures_of<FaultyNeg<Fault::writes>>(), "input 0 afterwards"));
}

}  // namespace planted_bugs_test
