#pragma once

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// A seed as the input of an operation: int64 (2,), replicated. What changes from step to step is
/// an input, so that a recorded step can be replayed with another seed.
DTensor seed_input(Seed seed, const Mesh& mesh);
/// The numbers of a seed on the host: int64 (2,).
at::Tensor seed_tensor(Seed seed);

/// x with each element set to 0 with probability `rate` and the others scaled by 1 / (1 - rate)
/// (tf.nn.experimental.stateless_dropout). An element stays if stateless_uniform(seed) at its
/// global index, in float32 whatever x's dtype, is at least `rate`: the same elements on every
/// mesh. `seed` as of seed_input(). Layout stays; no communication. The gradient is the dropout of
/// dy by the same seed. Rate 0 gives x itself. Throws ConfigError unless 0 <= rate < 1 and x is
/// floating.
DTensor dropout(const DTensor& x, double rate, const DTensor& seed);

/// x + noise, and x · (1 + noise): normal numbers of mean 0, stateless_normal(seed) at each
/// element's global index, so the same on every mesh. Seed, layout, communication and errors as of
/// dropout(); the gradients are dy, and dy · (1 + noise) by the same seed.
DTensor gaussian_noise(const DTensor& x, double stddev, const DTensor& seed);
DTensor gaussian_dropout(const DTensor& x, double stddev, const DTensor& seed);

/// Random numbers of a shape by a seed that may change from step to step, so that a recorded step
/// draws new ones: those of stateless_uniform(), stateless_normal() and
/// stateless_truncated_normal() for the seed's pair, the same on every mesh, in the layout in force
/// for new values if it is of the seed's mesh, else replicated. `seed` as of seed_input(); in a
/// layer, `context.random->next_input(path(), mesh)`. No communication, and no gradient. Throws
/// ConfigError for a dtype that is not floating.
DTensor random_uniform(const Shape& shape, const DTensor& seed, double minval = 0,
                       double maxval = 1, at::ScalarType dtype = at::kFloat);
DTensor random_normal(const Shape& shape, const DTensor& seed, double mean = 0, double stddev = 1,
                      at::ScalarType dtype = at::kFloat);
DTensor random_truncated_normal(const Shape& shape, const DTensor& seed, double mean = 0,
                                double stddev = 1, at::ScalarType dtype = at::kFloat);

/// A class drawn by each row of logits: (…, n) of a floating dtype -> (…) int64, class i with
/// probability softmax(logits)[i] (keras.random.categorical draws several a row). It is the place
/// of the largest logit + noise, Gumbel noise -log(-log(u)) of u = stateless_uniform(seed) at each
/// logit's global index, in float32: the same class on every mesh. A logit of -inf is drawn only
/// where all are. As u is of steps of 2^-23, a class below 1e-7 times the likeliest comes too
/// seldom, or never. Sharding stays; a sharded last axis costs what argmax does. Divide logits by a
/// temperature first; `seed` as of seed_input(). No gradient. Throws ConfigError unless logits are
/// floating.
DTensor categorical(const DTensor& logits, const DTensor& seed);

}  // namespace tessera::ops
