#include <tessera/framework/ops/attention/rotary.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/gpu_table.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Rotates the pairs of x by position · frequency. The optional second input holds positions, of
/// x's rank up to the axis of steps.
struct RotaryOp {
  static constexpr std::string_view name = "rotary";
  std::vector<double> frequencies = {};  ///< angle per step of each pair
  double magnitude = 1;                  ///< factor of rotated features
  bool interleaved = false;
  int64_t axis = 0;  ///< the axis of steps
  auto attributes() const { return std::tie(frequencies, magnitude, interleaved, axis); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    if (in[0].shape.back() < 2 * std::ssize(frequencies)) {
      throw ShapeError(std::string(name), "x must have the features that are rotated",
                       str(in[0].shape.back(), " for ", std::ssize(frequencies), " pairs"),
                       "pass as many features as before");
    }
    if (in.size() == 1) return {in[0]};
    check_index_dtype(name, "positions", in[1]);
    const Shape steps(in[0].shape.begin(), in[0].shape.begin() + axis + 1);
    bool fits = in[1].shape.size() == steps.size();
    for (size_t a = 0; fits && a < steps.size(); ++a) {
      fits = in[1].shape[a] == 1 || in[1].shape[a] == steps[a];
    }
    if (!fits) {
      throw ShapeError(std::string(name), "positions must be broadcast to " + to_string(steps),
                       to_string(in[1].shape), "reshape them");
    }
    return {in[0]};
  }
  Rule rule(const Specs& in) const {
    std::string x, positions;
    for (int64_t a = 0; a < in[0].rank(); ++a) {
      const std::string factor = str("a", a, " ");
      x += a + 1 == in[0].rank() ? "!" + factor : factor;
      if (in.size() == 1 || a > axis) continue;
      const bool broadcast = in[1].shape[size_t(a)] != in[0].shape[size_t(a)];
      positions += broadcast ? ". " : factor;
    }
    return Rule::parse(x + (in.size() == 1 ? "" : ", " + positions) + "-> " + x)
        .passing(Passes::sums);
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor& x = in[0];
    const at::ScalarType dtype = at::toOpMathType(x.scalar_type());
    const at::Tensor angles = angles_of(in);
    const at::Tensor cos = angles.cos().mul_(magnitude).to(dtype);
    const at::Tensor sin = angles.sin().mul_(magnitude).to(dtype);
    const int64_t rotated = 2 * std::ssize(frequencies);
    const at::Tensor y = at::empty(x.sizes(), x.options().dtype(dtype));
    const auto [a, b] = pairs_of(x);
    auto [first, second] = pairs_of(y);
    at::mul_out(first, a, cos).addcmul_(b.to(dtype), sin, -1);
    at::mul_out(second, b, cos).addcmul_(a.to(dtype), sin);
    const int64_t rest = x.size(-1) - rotated;
    if (rest > 0) y.narrow(-1, rotated, rest).copy_(x.narrow(-1, rotated, rest));
    return {y.to(x.scalar_type())};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    RotaryOp back = *this;
    for (double& frequency : back.frequencies) frequency = -frequency;
    if (saved.size() == 1) return {run_op(back, {dy[0]})};
    return {run_op(back, {dy[0], saved.in(1)}), DTensor()};
  }
  static Samples<RotaryOp> samples() {
    const SampleInput rows{{2, 3}, at::kLong, 0, 9}, steps{{1, 4}, at::kLong, 0, 9};
    return {{{{{2, 3, 2, 4}}}, {{1, 0.3}, 1, false, 1}},
            {{{{2, 5, 2, 4}}}, {{0.7, 0.1}, 1.5, true, 1}},
            {{{{2, 3, 2, 5}}, rows}, {{0.7, 0.1}, 1, false, 1}},
            {{{{2, 4, 1, 2}}, steps}, {{0.4}, 1, true, 1}},
            {{{{4, 3}}}, {{0.4}, 2, false, 0}},
            {{{{2, 3, 2}, at::kFloat}}, {{0.4}, 1, false, 1}}};
  }

 private:
  /// Returns the angles of a block, float64, with extent 1 between steps and pairs.
  at::Tensor angles_of(const LocalArgs& in) const {
    const at::TensorOptions options = in[0].options().dtype(at::kDouble);
    std::vector<int64_t> bits;
    for (const double frequency : frequencies) bits.push_back(std::bit_cast<int64_t>(frequency));
    const at::Tensor rates = cached_table(
        name, bits, options, [&] { return at::tensor(at::ArrayRef<double>(frequencies)); });
    const Interval steps = in.range(0, axis);
    at::Tensor positions =
        in.size() == 1 ? at::arange(steps.lo, steps.hi, options) : in[1].to(at::kDouble);
    for (int64_t a = axis + 1; a < in[0].dim(); ++a) positions = positions.unsqueeze(-1);
    return positions.mul(rates);
  }
  /// Returns the first and the second features of all pairs, as views.
  std::pair<at::Tensor, at::Tensor> pairs_of(const at::Tensor& x) const {
    const int64_t pairs = std::ssize(frequencies);
    if (!interleaved) return {x.narrow(-1, 0, pairs), x.narrow(-1, pairs, pairs)};
    return {x.slice(-1, 0, 2 * pairs, 2), x.slice(-1, 1, 2 * pairs, 2)};
  }
};

TESSERA_REGISTER_OP(RotaryOp);

void check_rotary(bool fits, const char* rule, const std::string& received, const char* fix) {
  if (!fits) throw ConfigError("rotary", rule, received, fix);
}

/// Throws ConfigError for options that do not fit `dim` features.
void check_rotary_options(const ops::RotaryOptions& o, int64_t dim) {
  const int64_t rotated = o.rotated.value_or(dim);
  check_rotary(rotated >= 2 && rotated % 2 == 0 && rotated <= dim,
               "an even number of features, at least 2, is rotated", str(rotated, " of ", dim),
               "change the features, or set `rotated`");
  check_rotary(std::isfinite(o.max_wavelength) && o.max_wavelength > 1,
               "max_wavelength is greater than 1", str(o.max_wavelength), "use 10000");
  check_rotary(std::isfinite(o.scaling_factor) && o.scaling_factor >= 1,
               "scaling_factor is at least 1", str(o.scaling_factor), "use 1 for none");
  check_rotary(std::isfinite(o.magnitude.value_or(1)), "magnitude is finite",
               str(o.magnitude.value_or(1)), "leave it out");
  const bool by_length = o.scaling == RotaryScaling::llama3 || o.scaling == RotaryScaling::yarn;
  check_rotary(!by_length || o.original_length >= 1,
               "llama3 and yarn need original_length, the sequence length of the training",
               str(o.original_length), "set it (original_max_position_embeddings)");
  check_rotary(0 < o.low_freq_factor && o.low_freq_factor < o.high_freq_factor,
               "low_freq_factor is positive and less than high_freq_factor",
               str(o.low_freq_factor, " and ", o.high_freq_factor), "use 1 and 4");
  check_rotary(0 < o.beta_slow && o.beta_slow <= o.beta_fast,
               "beta_slow is positive and at most beta_fast",
               str(o.beta_slow, " and ", o.beta_fast), "use 1 and 32");
}

/// Returns which share of pair `i` of `pairs` is not scaled, in [0, 1].
double unscaled_share(const ops::RotaryOptions& o, double frequency, int64_t i, int64_t pairs) {
  const double turns = double(o.original_length) * frequency / (2 * std::numbers::pi);
  if (o.scaling == RotaryScaling::llama3) {
    const double share = (turns - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor);
    return std::clamp(share, 0.0, 1.0);
  }
  // Returns the pair, as a real number, that makes this number of turns.
  const auto pair_of = [&](double count) {
    return double(pairs) * std::log(double(o.original_length) / (count * 2 * std::numbers::pi)) /
           std::log(o.max_wavelength);
  };
  const double low = std::max(std::floor(pair_of(o.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_of(o.beta_slow)), double(2 * pairs - 1));
  if (low == high) high += 0.001;
  return 1 - std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
}

std::vector<double> rotary_frequencies(const ops::RotaryOptions& o, int64_t pairs) {
  std::vector<double> all;
  for (int64_t i = 0; i < pairs; ++i) {
    const double frequency = std::pow(o.max_wavelength, -double(i) / double(pairs));
    const double scaled = frequency / o.scaling_factor;
    if (o.scaling == RotaryScaling::none) {
      all.push_back(frequency);
    } else if (o.scaling == RotaryScaling::linear) {
      all.push_back(scaled);
    } else {
      const double share = unscaled_share(o, frequency, i, pairs);
      all.push_back(share * frequency + (1 - share) * scaled);
    }
  }
  return all;
}

}  // namespace

namespace ops {

DTensor rotary(const DTensor& x, const DTensor& positions, const RotaryOptions& options) {
  if (x.rank() < 2) {
    throw ShapeError("rotary", "x has an axis of steps and one of features", to_string(x.shape()),
                     "reshape it");
  }
  const int64_t axis = normalize_axis(options.axis, x.rank(), "rotary");
  if (axis == x.rank() - 1) {
    throw ShapeError("rotary", "the axis of steps is before the last one, the features",
                     str("axis ", axis, " of ", to_string(x.shape())), "set `axis`");
  }
  const int64_t dim = x.size(x.rank() - 1);
  check_rotary_options(options, dim);
  const bool yarn = options.scaling == RotaryScaling::yarn;
  const RotaryOp op{
      rotary_frequencies(options, options.rotated.value_or(dim) / 2),
      options.magnitude.value_or(yarn ? 0.1 * std::log(options.scaling_factor) + 1 : 1),
      options.interleaved, axis};
  if (!positions.defined()) return run_op(op, {x});
  Shape shape = positions.shape();
  while (std::ssize(shape) <= axis) shape.insert(shape.begin(), 1);
  return run_op(op, {x, to_int64_indices(reshape(positions, shape))});
}

}  // namespace ops
}  // namespace tessera
