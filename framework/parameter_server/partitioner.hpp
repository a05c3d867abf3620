#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera::strategy {

/// Into how many parts a variable is cut along axis 0 (tf.distribute.experimental.partitioners);
/// 1: it stays whole. An empty function: all stay whole.
using Partitioner = std::function<int64_t(const Shape& shape, at::ScalarType dtype)>;

/// `num_shards` parts, or one for each row if those are fewer. Throws ConfigError below 1.
Partitioner FixedShardsPartitioner(int64_t num_shards);
/// A part for every `min_shard_bytes` that a variable has or has begun, but no more than rows or
/// `max_shards`. Throws ConfigError below 1.
Partitioner MinSizePartitioner(int64_t min_shard_bytes = 256 << 10, int64_t max_shards = 1);
/// Cuts into as few parts of at most `max_shard_bytes` as there are, rows whole, at most
/// `max_shards`. Throws ConfigError below 1.
Partitioner MaxSizePartitioner(int64_t max_shard_bytes,
                               std::optional<int64_t> max_shards = std::nullopt);

}  // namespace tessera::strategy
