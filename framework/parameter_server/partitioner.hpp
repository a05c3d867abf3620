#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera::strategy {

/// Returns the number of parts along axis 0 into which a variable is split
/// (tf.distribute.experimental.partitioners). An empty function: variables are not split.
using Partitioner = std::function<int64_t(const Shape& shape, at::ScalarType dtype)>;

/// Returns min(num_shards, rows) parts, at least 1. Throws ConfigError for an argument below 1.
Partitioner FixedShardsPartitioner(int64_t num_shards);
/// Returns ceil(bytes / min_shard_bytes) parts, at most one per row and at most `max_shards`, at
/// least 1. Throws ConfigError for an argument below 1.
Partitioner MinSizePartitioner(int64_t min_shard_bytes = 256 << 10, int64_t max_shards = 1);
/// Returns the smallest number of parts of whole rows with at most `max_shard_bytes` each, limited
/// to `max_shards`. Throws ConfigError for an argument below 1.
Partitioner MaxSizePartitioner(int64_t max_shard_bytes,
                               std::optional<int64_t> max_shards = std::nullopt);

}  // namespace tessera::strategy
