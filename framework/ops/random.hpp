#pragma once

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/random.hpp>
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
