#include <tessera/framework/ops/random.hpp>

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/draws.hpp>
#include <tessera/framework/ops/internal/gpu_draw.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera {

using namespace detail;

namespace {

using namespace kernels;

/// Checks and infers the output of an operation on x and a seed.
Specs infer_draw(std::string_view name, const Specs& in) {
  check_floating(name, in[0]);
  check_seed(name, in[1]);
  return {in[0]};
}

using Draw = void (*)(Seed, const Shape&, std::span<const Interval>, float, float, float*);

Draw draw_of(DrawKind kind) {
  if (kind == uniform_draw) return stateless_uniform;
  return kind == normal_draw ? Draw(stateless_normal) : Draw(stateless_truncated_normal);
}

/// Returns the slice of the draw that belongs to a block of x.
DrawSlice slice_of(const LocalArgs& in) { return {seed_of(in[1]), in.spec(0).shape, in.ranges(0)}; }

/// Draws a float32 for each element of x.
at::Tensor drawn(const LocalArgs& in, DrawKind kind, double a, double b) {
  const auto from = static_cast<float>(a), to = static_cast<float>(b);
  if (!in[0].is_cpu()) return draw_on_gpu(kind, slice_of(in), from, to, in[0].device());
  const Draw draw = draw_of(kind);
  const Seed seed = seed_of(in[1]);
  const at::Tensor numbers = at::empty(in[0].sizes(), at::kFloat);
  float* const out = numbers.data_ptr<float>();
  if (numbers.dim() == 0 || numbers.numel() == 0) {
    draw(seed, in.spec(0).shape, in.ranges(0), from, to, out);
    return numbers;
  }
  const int64_t row = numbers.numel() / numbers.size(0);
  at::parallel_for(0, numbers.size(0), 1 + at::internal::GRAIN_SIZE / row,
                   [&](int64_t begin, int64_t end) {
                     std::vector<Interval> slice = in.ranges(0);
                     slice[0] = {slice[0].lo + begin, slice[0].lo + end};
                     draw(seed, in.spec(0).shape, slice, from, to, out + begin * row);
                   });
  return numbers;
}

struct DropoutOp {
  static constexpr std::string_view name = "dropout";
  double rate = 0;
  auto attributes() const { return std::tie(rate); }

  Specs infer(const Specs& in) const { return infer_draw(name, in); }
  Rule rule(const Specs& in) const { return draw_rule({in[0]}); }
  Tensors forward(const LocalArgs& in) const {
    const auto least = static_cast<float>(rate);
    const double scale = 1 / (1 - rate);
    if (!in[0].is_cpu() && in[0].scalar_type() == at::kFloat) {
      return {dropout_on_gpu(in[0], slice_of(in), least, static_cast<float>(scale))};
    }
    const at::Tensor numbers = drawn(in, uniform_draw, 0, 1);
    const at::Tensor scaled = in[0].mul(scale);
    // Not a product with the mask, which would turn a dropped infinity into NaN.
    if (scaled.scalar_type() != at::kFloat) {
      return {at::where(numbers.ge(least), scaled, at::zeros({}, scaled.options()))};
    }
    // In one pass: 0 where `numbers` are not above the threshold.
    return {at::threshold_backward(scaled, numbers, std::nextafter(least, -1.0F))};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {ops::dropout(dy[0], rate, saved.in(1)), DTensor()};
  }
  static Samples<DropoutOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{5, 3}}, seed}, {0.4}},
            {{{{}}, seed}, {0.3}},
            {{{{7}}, seed}, {0.5}},
            {{{{2, 3, 5}}, seed}, {0.25}}};
  }
};

/// x + noise or, as dropout, x · (1 + noise).
template <bool Times>
struct GaussianOp {
  static constexpr std::string_view name = Times ? "gaussian_dropout" : "gaussian_noise";
  double stddev = 0;
  auto attributes() const { return std::tie(stddev); }

  Specs infer(const Specs& in) const { return infer_draw(name, in); }
  Rule rule(const Specs& in) const { return draw_rule({in[0]}); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor noise = drawn(in, normal_draw, Times ? 1 : 0, stddev).to(in[0].scalar_type());
    return {Times ? in[0].mul(noise) : in[0].add(noise)};
  }
  static constexpr Saves saves = Times ? inputs(1) : nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    if constexpr (Times) return {run_op(*this, {dy[0], saved.in(1)}), DTensor()};
    return {dy[0], DTensor()};
  }
  static Samples<GaussianOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{5, 3}}, seed}, {0.4}}, {{{{}}, seed}, {0.3}}, {{{{2, 3, 5}}, seed}, {1.5}}};
  }
};

/// Random numbers with the shape, dtype and layout of the first input, whose values are ignored.
template <DrawKind kind>
struct RandomOp {
  static constexpr std::string_view name = kind == uniform_draw  ? "random_uniform"
                                           : kind == normal_draw ? "random_normal"
                                                                 : "random_truncated_normal";
  static constexpr bool stops_gradient = true;
  double a = 0;
  double b = 1;
  auto attributes() const { return std::tie(a, b); }

  Specs infer(const Specs& in) const { return infer_draw(name, in); }
  Rule rule(const Specs& in) const { return draw_rule({in[0]}); }
  Tensors forward(const LocalArgs& in) const {
    return {drawn(in, kind, a, b).to(in[0].scalar_type())};
  }
  static Samples<RandomOp> samples() {
    const SampleInput like{{5, 3}}, seed{{2}, at::kLong, 0, 1000};
    return {{{like, seed}, {-1, 2}}, {{{{}}, seed}, {0, 1}}, {{{{2, 3, 5}}, seed}, {0.5, 3}}};
  }
};

/// x + Gumbel noise.
struct GumbelNoiseOp {
  static constexpr std::string_view name = "gumbel_noise";
  auto attributes() const { return std::tuple<>(); }

  Specs infer(const Specs& in) const { return infer_draw(name, in); }
  Rule rule(const Specs& in) const { return draw_rule({in[0]}); }
  Tensors forward(const LocalArgs& in) const {
    // u > 0 keeps the noise finite, so that -inf plus noise stays below all other sums.
    const at::Tensor u = drawn(in, uniform_draw, 0, 1);
    u.clamp_min_(std::numeric_limits<float>::min());
    const at::Tensor noise = u.log_().neg_().log_().neg_();
    return {in[0].add(noise.to(in[0].scalar_type()))};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const { return {dy[0], DTensor()}; }
  static Samples<GumbelNoiseOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{5, 3}}, seed}}, {{{{2, 3, 5}}, seed}}};
  }
};

using RandomUniformOp = RandomOp<uniform_draw>;
using RandomNormalOp = RandomOp<normal_draw>;
using RandomTruncatedNormalOp = RandomOp<truncated_normal_draw>;
using GaussianNoiseOp = GaussianOp<false>;
using GaussianDropoutOp = GaussianOp<true>;

TESSERA_REGISTER_OP(DropoutOp);
TESSERA_REGISTER_OP(RandomUniformOp);
TESSERA_REGISTER_OP(RandomNormalOp);
TESSERA_REGISTER_OP(RandomTruncatedNormalOp);
TESSERA_REGISTER_OP(GaussianNoiseOp);
TESSERA_REGISTER_OP(GaussianDropoutOp);
TESSERA_REGISTER_OP(GumbelNoiseOp);

}  // namespace

void detail::check_seed(std::string_view op, const Spec& in) {
  if (in.shape == Shape{2} && in.dtype == at::kLong) return;
  throw ConfigError(std::string(op), "the seed is a pair of int64",
                    str(dtype_name(in.dtype), " ", to_string(in.shape)), "make it with seed_input");
}

Seed detail::seed_of(const at::Tensor& pair) {
  const at::Tensor here = pair.cpu();
  const int64_t* words = here.const_data_ptr<int64_t>();
  return {words[0], words[1]};
}

Rule detail::draw_rule(const Specs& shaped) {
  Rule rule = broadcast_rule(shaped);
  rule.in.push_back({Rule::none});
  return rule;
}

DTensor detail::draw_template(const Shape& shape, at::ScalarType dtype, const DTensor& seed,
                              double value) {
  const auto rank = static_cast<int64_t>(shape.size());
  const Layout layout = default_layout(rank);
  const bool fits = layout.mesh() == seed.mesh();
  return filled(shape, value, dtype, fits ? layout : Layout::replicated(seed.mesh(), rank));
}

namespace ops {

at::Tensor seed_tensor(Seed seed) { return at::tensor({seed.a, seed.b}, at::kLong); }

DTensor seed_input(Seed seed, const Mesh& mesh) { return host_input(seed_tensor(seed), mesh); }

DTensor dropout(const DTensor& x, double rate, const DTensor& seed) {
  if (!(rate >= 0 && rate < 1)) {
    throw ConfigError("dropout", "the rate lies in [0, 1)", str(rate),
                      "give the fraction of elements to drop");
  }
  return rate == 0 ? x : run_op(DropoutOp{rate}, {x, seed});
}

DTensor gaussian_noise(const DTensor& x, double stddev, const DTensor& seed) {
  return run_op(GaussianNoiseOp{stddev}, {x, seed});
}

DTensor gaussian_dropout(const DTensor& x, double stddev, const DTensor& seed) {
  return run_op(GaussianDropoutOp{stddev}, {x, seed});
}

DTensor random_uniform(const Shape& shape, const DTensor& seed, double minval, double maxval,
                       at::ScalarType dtype) {
  return run_op(RandomUniformOp{minval, maxval}, {draw_template(shape, dtype, seed), seed});
}

DTensor random_normal(const Shape& shape, const DTensor& seed, double mean, double stddev,
                      at::ScalarType dtype) {
  return run_op(RandomNormalOp{mean, stddev}, {draw_template(shape, dtype, seed), seed});
}

DTensor random_truncated_normal(const Shape& shape, const DTensor& seed, double mean, double stddev,
                                at::ScalarType dtype) {
  return run_op(RandomTruncatedNormalOp{mean, stddev}, {draw_template(shape, dtype, seed), seed});
}

DTensor categorical(const DTensor& logits, const DTensor& seed) {
  const bool half = logits.dtype() == at::kHalf || logits.dtype() == at::kBFloat16;
  const DTensor x = half ? cast(logits, at::kFloat) : logits;
  return argmax(run_op(GumbelNoiseOp(), {x, seed}), -1);
}

}  // namespace ops
}  // namespace tessera
