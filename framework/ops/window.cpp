#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/padding.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// All axes pass except `axis`, along which an output shard reads an interval of the input.
Rule window_rule(const Specs& in, int64_t axis) {
  Rule rule;
  for (const Spec& spec : in) {
    rule.in.emplace_back();
    for (int64_t a = 0; a < spec.rank(); ++a) rule.in.back().push_back(int(a));
  }
  rule.out = {rule.in[0]};
  rule.factors.assign(in[0].shape.size(), FactorKind::pass);
  rule.factors[size_t(axis)] = FactorKind::window;
  return rule;
}

/// Elements [begin, begin + size) of an axis. forward receives exactly the interval it returns.
struct SliceOp {
  static constexpr std::string_view name = "slice";
  int64_t axis = 0, begin = 0, size = 1;
  auto attributes() const { return std::tie(axis, begin, size); }
  Specs infer(const Specs& in) const {
    Spec out = in[0];
    out.shape[size_t(axis)] = size;
    return {out};
  }
  Rule rule(const Specs& in) const { return window_rule(in, axis).passing(Passes::all); }
  Interval window(size_t, int64_t, Interval out, const Specs&) const {
    return {out.lo + begin, out.hi + begin};
  }
  Tensors forward(const LocalArgs& in) const { return {in[0]}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const int64_t n = saved.shape(0)[size_t(axis)];
    return {ops::pad(dy[0], axis, begin, n - begin - size)};
  }
  static Samples<SliceOp> samples() {
    return {{{{{7, 3}}}, {0, 1, 5}}, {{{{4, 6}}}, {1, 3, 2}}, {{{{5}}}, {0, 2, 0}}};
  }
};

/// Adds constant elements at both ends of an axis. forward receives its block already padded.
struct PadOp : Padding {
  static constexpr std::string_view name = "pad";
  auto attributes() const { return std::tie(axis, before, after, value); }
  Specs infer(const Specs& in) const {
    Spec out = in[0];
    out.shape[size_t(axis)] += before + after;
    return {out};
  }
  Rule rule(const Specs& in) const {
    Rule rule = window_rule(in, axis);
    return value == 0 ? rule.passing(Passes::sums) : rule;
  }
  Interval window(size_t, int64_t, Interval out, const Specs&) const {
    return {out.lo - before, out.hi - before};
  }
  double fill() const { return value; }
  Tensors forward(const LocalArgs& in) const { return {in[0]}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {ops::slice(dy[0], axis, before, saved.shape(0)[size_t(axis)])};
  }
  static Samples<PadOp> samples() {
    return {
        {{{{4, 3}}}, {{0, 2, 1, 0}}}, {{{{3, 2}}}, {{1, 0, 5, 1.5}}}, {{{{2}}}, {{0, 4, 0, 0}}}};
  }
};

/// An axis in reversed order.
struct FlipOp {
  static constexpr std::string_view name = "flip";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const { return window_rule(in, axis).passing(Passes::all); }
  Interval window(size_t, int64_t, Interval out, const Specs& in) const {
    const int64_t n = in[0].shape[size_t(axis)];
    return {n - out.hi, n - out.lo};
  }
  Tensors forward(const LocalArgs& in) const { return {in[0].flip(axis)}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    return {run_op(*this, {dy[0]})};
  }
  static Samples<FlipOp> samples() {
    return {{{{{5, 3}}}, {0}}, {{{{2, 4}}}, {1}}, {{{{7}}}, {0}}};
  }
};

/// Tensors joined along an axis.
struct ConcatOp {
  static constexpr std::string_view name = "concat";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    Spec out = in[0];
    for (size_t i = 1; i < in.size(); ++i) {
      Shape expected = in[0].shape;
      if (in[i].shape.size() == expected.size()) {
        expected[size_t(axis)] = in[i].shape[size_t(axis)];
      }
      if (in[i].shape != expected) {
        throw ShapeError("concat", str("shapes must be equal except along axis ", axis),
                         to_string(in[0].shape) + " and " + to_string(in[i].shape), "");
      }
      out.shape[size_t(axis)] += in[i].shape[size_t(axis)];
    }
    return {out};
  }
  Rule rule(const Specs& in) const {
    std::vector<int> through;
    for (size_t i = 0; i < in.size(); ++i) through.push_back(int(i));
    return window_rule(in, axis).passing(Passes::all, through);
  }
  /// Returns the part of the output's interval that comes from an input, in the input's indices.
  Interval window(size_t input, int64_t, Interval out, const Specs& in) const {
    int64_t start = 0;
    for (size_t i = 0; i < input; ++i) start += in[i].shape[size_t(axis)];
    const Interval own = intersect(out, {start, start + in[input].shape[size_t(axis)]});
    return {own.lo - start, own.hi - start};
  }
  Tensors forward(const LocalArgs& in) const {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& tensor : in.all()) {
      if (tensor.size(axis) > 0) tensors.push_back(tensor);
    }
    return {tensors.size() == 1 ? tensors[0] : at::cat(tensors, axis)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
    Grads grads(saved.size());
    int64_t start = 0;
    for (size_t i = 0; i < grads.size(); ++i) {
      const int64_t n = saved.shape(i)[size_t(axis)];
      if (needs[i]) grads[i] = ops::slice(dy[0], axis, start, n);
      start += n;
    }
    return grads;
  }
  static Samples<ConcatOp> samples() {
    return {{{{{3, 2}}, {{4, 2}}}, {0}},
            {{{{2, 1}}, {{2, 3}}, {{2, 2}}}, {1}},
            {{{{5}}, {{0}}, {{2}}}, {0}}};
  }
};

TESSERA_REGISTER_OP(SliceOp);
TESSERA_REGISTER_OP(PadOp);
TESSERA_REGISTER_OP(FlipOp);
TESSERA_REGISTER_OP(ConcatOp);

/// Moves the last `shift` elements of an axis to its beginning.
DTensor rolled(const DTensor& x, int64_t axis, int64_t shift) {
  const int64_t rest = x.size(axis) - shift;
  if (shift == 0) return x;
  return ops::concat({ops::slice(x, axis, rest, shift), ops::slice(x, axis, 0, rest)}, axis);
}

}  // namespace

std::optional<Padding> detail::padding_of(const OpInfo& info, const void* op) {
  if (&info != &op_info<PadOp>()) return std::nullopt;
  return *static_cast<const PadOp*>(op);
}

namespace ops {

DTensor slice(const DTensor& x, int64_t axis, int64_t begin, int64_t size) {
  const int64_t a = normalize_axis(axis, x.rank(), "slice");
  const int64_t n = x.shape()[size_t(a)];
  if (begin < 0 || size < 0 || size > n - begin) {
    throw ShapeError("slice", str("[begin, begin + size) lies in [0, ", n, ")"),
                     str("begin ", begin, ", size ", size), "choose a range inside the axis");
  }
  return begin == 0 && size == n ? x : run_op(SliceOp{a, begin, size}, {x});
}

DTensor slice(const DTensor& x, const std::vector<int64_t>& start, const Shape& shape) {
  if (int64_t(start.size()) != x.rank() || int64_t(shape.size()) != x.rank()) {
    throw ShapeError("slice", str("start and shape have ", x.rank(), " numbers"),
                     to_string(start) + " and " + to_string(shape), "pass one for each axis");
  }
  DTensor y = x;
  for (int64_t a = 0; a < x.rank(); ++a) y = slice(y, a, start[size_t(a)], shape[size_t(a)]);
  return y;
}

DTensor pad(const DTensor& x, int64_t axis, int64_t before, int64_t after, double value) {
  const int64_t a = normalize_axis(axis, x.rank(), "pad");
  if (before < 0 || after < 0) {
    throw ShapeError("pad", "counts are at least 0", str(before, " and ", after),
                     "use slice to remove elements");
  }
  return before == 0 && after == 0 ? x : run_op(PadOp{{a, before, after, value}}, {x});
}

DTensor concat(const std::vector<DTensor>& tensors, int64_t axis) {
  if (tensors.empty()) throw ShapeError("concat", "at least one tensor must be given", "none", "");
  const int64_t a = normalize_axis(axis, tensors[0].rank(), "concat");
  return tensors.size() == 1 ? tensors[0] : run_op(ConcatOp{a}, tensors);
}

std::vector<DTensor> split(const DTensor& x, int64_t sections, int64_t axis) {
  const int64_t n = x.size(axis);
  if (sections < 1 || n % sections != 0) {
    throw ShapeError("split", str("the number of parts divides ", n), str(sections, " parts"),
                     "use slice for unequal parts");
  }
  std::vector<DTensor> list;
  const int64_t size = n / sections;
  for (int64_t i = 0; i < sections; ++i) list.push_back(slice(x, axis, i * size, size));
  return list;
}

DTensor flip(const DTensor& x, const std::vector<int64_t>& axes) {
  DTensor y = x;
  for (int64_t a = 0; axes.empty() && a < x.rank(); ++a) y = run_op(FlipOp{a}, {y});
  for (const int64_t axis : axes) {
    y = run_op(FlipOp{normalize_axis(axis, x.rank(), "flip")}, {y});
  }
  return y;
}

DTensor roll(const DTensor& x, const std::vector<int64_t>& shifts,
             const std::vector<int64_t>& axes) {
  if (axes.empty()) return reshape(roll(flatten(x), shifts, {0}), x.shape());
  const bool fits = shifts.size() == axes.size() || shifts.size() == 1 || axes.size() == 1;
  if (!fits || shifts.empty()) {
    throw ShapeError("roll", str("a shift for each of ", axes.size(), " axes, or one for all"),
                     str(shifts.size(), " shifts"), "give as many shifts as axes");
  }
  // An axis may be named twice: its shifts add up.
  std::vector<int64_t> sums(size_t(x.rank()), 0);
  for (size_t i = 0; i < std::max(shifts.size(), axes.size()); ++i) {
    const int64_t a = normalize_axis(axes[axes.size() == 1 ? 0 : i], x.rank(), "roll");
    const int64_t n = std::max<int64_t>(x.size(a), 1);
    const int64_t shift = shifts[shifts.size() == 1 ? 0 : i] % n;
    sums[size_t(a)] = (sums[size_t(a)] + shift + n) % n;
  }
  DTensor y = x;
  for (int64_t a = 0; a < x.rank(); ++a) y = rolled(y, a, sums[size_t(a)]);
  return y;
}

}  // namespace ops
}  // namespace tessera
