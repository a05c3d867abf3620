#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera::strategy {

/// Into how many parts a variable is cut along axis 0 (tf.distribute.experimental.partitioners);
/// 1: it stays whole. An empty function: all stay whole.
using Partitioner = std::function<int64_t(const Shape& shape, at::ScalarType dtype)>;

/// `num_shards` parts, or one for each row if those are fewer. Throws ConfigError below 1.
Partitioner FixedShardsPartitioner(int64_t num_shards);
/// A part for every `min_shard_bytes` that a variable has or has begun, but no more than rows or
/// `max_shards`. Throws ConfigError below 1.
Partitioner MinSizePartitioner(int64_t min_shard_bytes = 256 << 10, int64_t max_shards = 1);
/// As few parts of at most `max_shard_bytes` as there are, rows whole, at most `max_shards`. Throws
/// ConfigError below 1.
Partitioner MaxSizePartitioner(int64_t max_shard_bytes,
                               std::optional<int64_t> max_shards = std::nullopt);

/// A piece of a variable that rests on one server: some of its rows, or all of a scalar.
struct Part {
  size_t variable = 0;  ///< number in its group
  int server = 0;
  int number = 0;       ///< among the parts of its group on that server
  Interval rows = {};   ///< of axis 0; {0, 1} of a scalar
  Shape shape = {};
};

/// Where the variables of a group rest: the parts of one after those of the other.
struct PartPlan {
  std::vector<Part> parts;
  std::vector<std::string> paths;  ///< of the variables
  std::vector<at::ScalarType> dtypes;
  std::vector<bool> trained;  ///< by gradients
  int servers = 1;
  /// Parts that lie on a server, in order of their numbers.
  std::vector<Part> of_server(int server) const;
  /// What all tasks must have alike, one line; variables are set apart by "; ".
  std::string describe() const;
};

/// Cuts variables and deals the parts out, the first one to `first_server`. Row intervals are
/// shard_interval()s. Throws ConfigError for a variable with a constraint that would be cut, and
/// where the partitioner gives fewer than 1 part or more than there are rows.
PartPlan plan_parts(const std::vector<Variable>& variables, const Partitioner& partitioner,
                    int servers, int first_server = 0);

}  // namespace tessera::strategy
