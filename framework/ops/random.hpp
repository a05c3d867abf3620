#pragma once

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Returns a seed as the input of an operation: int64 (2,), replicated. Seeds are inputs so that a
/// captured step can be replayed with another seed.
DTensor seed_input(Seed seed, const Mesh& mesh);
/// Returns the seed as a host tensor: int64 (2,).
at::Tensor seed_tensor(Seed seed);

/// Sets each element of x to 0 with probability `rate` and scales the others by 1 / (1 - rate)
/// (tf.nn.experimental.stateless_dropout). An element is kept if stateless_uniform(seed) at its
/// global index, always in float32, is at least `rate`, so the mask is the same on every mesh.
/// `seed` is made by seed_input(). Keeps the layout; no communication. The gradient is the
/// dropout of dy with the same seed. Rate 0 returns x itself. Throws ConfigError unless
/// 0 <= rate < 1 and x is floating-point.
DTensor dropout(const DTensor& x, double rate, const DTensor& seed);

/// x + noise, and x · (1 + noise), where noise is normal with mean 0: stateless_normal(seed) at
/// each element's global index, so it is the same on every mesh. Seed, layout, communication and
/// the dtype check are those of dropout(). The gradients are dy, and dy · (1 + noise) with the same
/// seed.
DTensor gaussian_noise(const DTensor& x, double stddev, const DTensor& seed);
DTensor gaussian_dropout(const DTensor& x, double stddev, const DTensor& seed);

/// Random tensors of a shape, drawn from a seed that is an input, so that each replay of a captured
/// step draws new numbers. The numbers are those of stateless_uniform(), stateless_normal() and
/// stateless_truncated_normal() for that seed, the same on every mesh. The layout is the default
/// layout for new values if that is on the seed's mesh, else replicated. `seed` is made by
/// seed_input(); in a layer, use `context.random->next_input(path(), mesh)`. No communication, no
/// gradient. Throws ConfigError unless dtype is floating-point.
DTensor random_uniform(const Shape& shape, const DTensor& seed, double minval = 0,
                       double maxval = 1, at::ScalarType dtype = at::kFloat);
DTensor random_normal(const Shape& shape, const DTensor& seed, double mean = 0, double stddev = 1,
                      at::ScalarType dtype = at::kFloat);
DTensor random_truncated_normal(const Shape& shape, const DTensor& seed, double mean = 0,
                                double stddev = 1, at::ScalarType dtype = at::kFloat);

/// Random integers in [minval, maxval) (keras.random.randint): the numbers of
/// tf.random.stateless_uniform, which draws int32 by itself and other dtypes as int64. Layout, seed
/// and communication are those of random_uniform. Throws ConfigError for an empty range, one beyond
/// the dtype, and a dtype that is not an integer.
DTensor random_randint(const Shape& shape, int64_t minval, int64_t maxval, const DTensor& seed,
                       at::ScalarType dtype = at::kInt);

/// Random tensors of a gamma distribution with scale 1 (keras.random.gamma), a beta distribution
/// (keras.random.beta) and a binomial distribution (keras.random.binomial). Parameters are numbers,
/// or tensors that broadcast to `shape`; tensors decide the layout, otherwise it is that of
/// random_uniform. Each element's draw depends on the seed, its global index and its own
/// parameters, so it is the same on every mesh. It is TensorFlow's (tf.random.stateless_gamma and
/// stateless_binomial for parameters of that shape), except binomial where
/// count · min(p, 1 - p) < 10. Computed in float64 on the host; float16 and bfloat16 are rounded
/// once. alpha and beta that are not positive give NaN; probabilities count as 0 below 0 and as 1
/// above 1. No gradient. Throws ConfigError unless dtype is floating-point, ShapeError for
/// parameters that do not broadcast.
DTensor random_gamma(const Shape& shape, const Operand& alpha, const DTensor& seed,
                     at::ScalarType dtype = at::kFloat);
DTensor random_beta(const Shape& shape, const Operand& alpha, const Operand& beta,
                    const DTensor& seed, at::ScalarType dtype = at::kFloat);
DTensor random_binomial(const Shape& shape, const Operand& counts, const Operand& probabilities,
                        const DTensor& seed, at::ScalarType dtype = at::kFloat);

/// Permutes the slices of x along an axis (keras.random.shuffle on TensorFlow): the order is that
/// of stateless_uniform(seed), one number a slice, the same on every mesh. Layout, communication
/// and gradient are those of gather(). Throws ShapeError for an axis out of range.
DTensor random_shuffle(const DTensor& x, const DTensor& seed, int64_t axis = 0);

/// Draws one class from each row of logits: (…, n) of a floating dtype -> (…) int64, class i with
/// probability softmax(logits)[i] (keras.random.categorical draws several per row). The class is
/// the argmax of logits plus Gumbel noise -log(-log(u)), u = stateless_uniform(seed) at each
/// logit's global index, in float32, so it is the same on every mesh. A class with logit -inf is
/// drawn only if all logits of its row are -inf. Since u is a multiple of 2^-23, a class with less
/// than 1e-7 of the highest probability is drawn too rarely, or never. The other axes keep their
/// sharding; a sharded last axis costs what argmax costs. To sample with a temperature, divide the
/// logits by it first. `seed` is made by seed_input(). No gradient. Throws ConfigError unless
/// logits are floating-point.
DTensor categorical(const DTensor& logits, const DTensor& seed);

}  // namespace tessera::ops
