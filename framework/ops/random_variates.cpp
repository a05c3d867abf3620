#include <limits>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/element_draws.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/draws.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns a block's parameters as float64 on the host.
at::Tensor host_parameters(const at::Tensor& block) {
  return block.to(at::TensorOptions().device(at::kCPU).dtype(at::kDouble)).contiguous();
}

/// Calls draw(draws, position in the block) for each element of the first input's block.
template <class Draw>
at::Tensor drawn_elements(const LocalArgs& in, Seed seed, const Draw& draw) {
  const at::Tensor numbers = at::empty(in[0].sizes(), at::kDouble);
  double* const out = numbers.mutable_data_ptr<double>();
  const philox::Stream stream(seed);
  const Shape& shape = in.spec(0).shape;
  constexpr int64_t grain = 256;
  at::parallel_for(0, numbers.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, element = 0, step = 1;
      for (size_t a = shape.size(); a-- > 0;) {
        const Interval range = in.range(0, int64_t(a));
        element += (range.lo + rest % range.size()) * step;
        rest /= range.size();
        step *= shape[a];
      }
      ElementDraws draws(stream, static_cast<uint64_t>(element));
      out[i] = draw(draws, i);
    }
  });
  return numbers.to(in[0].options());
}

/// Random numbers of a gamma distribution with the shapes that the first input has.
struct RandomGammaOp {
  static constexpr std::string_view name = "random_gamma";
  static constexpr bool stops_gradient = true;
  int64_t shift = 0;  ///< added to both numbers of the seed
  auto attributes() const { return std::tie(shift); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_seed(name, in[1]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return draw_rule({in[0]}); }
  Tensors forward(const LocalArgs& in) const {
    const auto [a, b] = seed_of(in[1]);
    const at::Tensor alphas = host_parameters(in[0]);
    const double* const alpha = alphas.const_data_ptr<double>();
    return {drawn_elements(in, {a + shift, b + shift}, [alpha](ElementDraws& draws, int64_t i) {
      return gamma_draw(draws, alpha[i]);
    })};
  }
  static Samples<RandomGammaOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{5, 3}, at::kDouble, 0.2, 4}, seed}, {0}},
            {{{{}, at::kDouble, 0.2, 4}, seed}, {0}},
            {{{{2, 3, 5}, at::kDouble, 0.2, 4}, seed}, {12}}};
  }
};

/// Random numbers of a binomial distribution: the first input counts the trials, the second is the
/// probability of a success.
struct RandomBinomialOp {
  static constexpr std::string_view name = "random_binomial";
  static constexpr bool stops_gradient = true;
  auto attributes() const { return std::tuple<>(); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_same_dtype(name, {in[0], in[1]});
    check_seed(name, in[2]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return draw_rule({in[0], in[1]}); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor counts = host_parameters(in[0]), probabilities = host_parameters(in[1]);
    const double* const count = counts.const_data_ptr<double>();
    const double* const probability = probabilities.const_data_ptr<double>();
    return {drawn_elements(in, seed_of(in[2]), [&](ElementDraws& draws, int64_t i) {
      return binomial_draw(draws, count[i], probability[i]);
    })};
  }
  static Samples<RandomBinomialOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{5, 3}, at::kDouble, 1, 60}, {{5, 3}, at::kDouble, 0, 1}, seed}},
            {{{{2, 3, 5}, at::kDouble, 1, 9}, {{2, 3, 5}, at::kDouble, 0, 1}, seed}}};
  }
};

/// Random integers with the shape, dtype and layout of the first input, whose values are ignored.
struct RandomIntegersOp {
  static constexpr std::string_view name = "random_randint";
  static constexpr bool stops_gradient = true;
  int64_t minval = 0, maxval = 1;
  auto attributes() const { return std::tie(minval, maxval); }

  Specs infer(const Specs& in) const {
    check_seed(name, in[1]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return draw_rule({in[0]}); }
  Tensors forward(const LocalArgs& in) const {
    const bool narrow = in[0].scalar_type() == at::kInt;
    // An int64 takes two words.
    Shape shape = in.spec(0).shape;
    std::vector<Interval> slice = in.ranges(0);
    if (!narrow) {
      shape.push_back(2);
      slice.push_back({0, 2});
    }
    std::vector<uint32_t> words(static_cast<size_t>(in[0].numel() * (narrow ? 1 : 2)));
    stateless_bits(seed_of(in[1]), shape, slice, words.data());
    const at::Tensor numbers = at::empty(in[0].sizes(), at::kLong);
    int64_t* const out = numbers.mutable_data_ptr<int64_t>();
    const auto least = static_cast<uint64_t>(minval), count = static_cast<uint64_t>(maxval) - least;
    for (size_t i = 0; i < static_cast<size_t>(numbers.numel()); ++i) {
      const uint64_t word = narrow ? words[i] : philox::join(words[2 * i], words[2 * i + 1]);
      out[i] = static_cast<int64_t>(least + word % count);
    }
    return {numbers.to(in[0].options())};
  }
  static Samples<RandomIntegersOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{5, 3}, at::kInt, 0, 2}, seed}, {-5, 100}},
            {{{{2, 3, 5}, at::kLong, 0, 2}, seed}, {0, 7}},
            {{{{}, at::kLong, 0, 2}, seed}, {-3, 3}}};
  }
};

/// A random permutation of [0, n), with the shape and layout of the first input, whose values are
/// ignored. Each shard sorts all n numbers.
struct RandomPermutationOp {
  static constexpr std::string_view name = "random_permutation";
  static constexpr bool stops_gradient = true;
  auto attributes() const { return std::tuple<>(); }

  Specs infer(const Specs& in) const {
    check_index_dtype(name, "the template's numbers", in[0]);
    check_seed(name, in[1]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return draw_rule({in[0]}); }
  Tensors forward(const LocalArgs& in) const {
    const Shape& shape = in.spec(0).shape;
    const at::Tensor keys = at::empty(shape, at::kFloat);
    const std::vector<Interval> all = {{0, shape[0]}};
    stateless_uniform(seed_of(in[1]), shape, all, 0, 1, keys.mutable_data_ptr<float>());
    const Interval own = in.range(0, 0);
    const at::Tensor order = at::argsort(keys, /*stable=*/true, 0, /*descending=*/false);
    return {order.narrow(0, own.lo, own.size()).clone().to(in[0].device())};
  }
  static Samples<RandomPermutationOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{7}, at::kLong, 0, 2}, seed}}, {{{{1}, at::kLong, 0, 2}, seed}}};
  }
};

TESSERA_REGISTER_OP(RandomGammaOp);
TESSERA_REGISTER_OP(RandomBinomialOp);
TESSERA_REGISTER_OP(RandomIntegersOp);
TESSERA_REGISTER_OP(RandomPermutationOp);

/// Returns a parameter of a distribution for each element to draw, not in float16 or bfloat16.
DTensor parameter(const Operand& value, const Shape& shape, const DTensor& seed,
                  at::ScalarType dtype) {
  const at::ScalarType wide = at::toOpMathType(dtype);
  if (!value.tensor.defined()) return draw_template(shape, wide, seed, value.number);
  const DTensor tensor = ops::cast(value.tensor, wide);
  return tensor.shape() == shape ? tensor : ops::broadcast_to(tensor, shape);
}

void check_drawn_dtype(std::string_view op, at::ScalarType dtype) {
  check_floating(op, {{}, dtype});
}

}  // namespace

namespace ops {

DTensor random_randint(const Shape& shape, int64_t minval, int64_t maxval, const DTensor& seed,
                       at::ScalarType dtype) {
  if (!at::isIntegralType(dtype, /*includeBool=*/false)) {
    throw ConfigError("random_randint", "the dtype is an integer one", dtype_name(dtype),
                      "draw random_uniform instead");
  }
  const bool narrow = dtype == at::kInt;
  using Narrow = std::numeric_limits<int32_t>;
  const bool fits = !narrow || (minval >= Narrow::min() && maxval - 1 <= Narrow::max());
  if (minval >= maxval || !fits) {
    throw ConfigError("random_randint", "minval is below maxval, and both in the dtype's range",
                      str("[", minval, ", ", maxval, ")"), "correct the range");
  }
  const DTensor like = draw_template(shape, narrow ? at::kInt : at::kLong, seed);
  return cast(run_op(RandomIntegersOp{minval, maxval}, {like, seed}), dtype);
}

DTensor random_gamma(const Shape& shape, const Operand& alpha, const DTensor& seed,
                     at::ScalarType dtype) {
  check_drawn_dtype("random_gamma", dtype);
  return cast(run_op(RandomGammaOp(), {parameter(alpha, shape, seed, dtype), seed}), dtype);
}

DTensor random_beta(const Shape& shape, const Operand& alpha, const Operand& beta,
                    const DTensor& seed, at::ScalarType dtype) {
  check_drawn_dtype("random_beta", dtype);
  // The quotient of two gamma variables, the second one with Keras' second seed.
  const DTensor a = run_op(RandomGammaOp(), {parameter(alpha, shape, seed, dtype), seed});
  const DTensor b = run_op(RandomGammaOp{12}, {parameter(beta, shape, seed, dtype), seed});
  return cast(a / (a + b), dtype);
}

DTensor random_binomial(const Shape& shape, const Operand& counts, const Operand& probabilities,
                        const DTensor& seed, at::ScalarType dtype) {
  check_drawn_dtype("random_binomial", dtype);
  return cast(run_op(RandomBinomialOp(), {parameter(counts, shape, seed, dtype),
                                          parameter(probabilities, shape, seed, dtype), seed}),
              dtype);
}

DTensor random_shuffle(const DTensor& x, const DTensor& seed, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "random_shuffle");
  const DTensor order =
      run_op(RandomPermutationOp(), {draw_template({x.size(a)}, at::kLong, seed), seed});
  return gather(x, order, a);
}

}  // namespace ops
}  // namespace tessera
