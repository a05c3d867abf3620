#include <tessera/framework/parameter_server/partitioner.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

void check_positive(const char* partitioner, const char* what, int64_t value) {
  if (value >= 1) return;
  throw ConfigError(partitioner, str(what, " must be at least 1"), str(value), "pass a larger one");
}

int64_t rows_of(const Shape& shape) { return shape.empty() ? 1 : shape[0]; }

int64_t bytes_of(const Shape& shape, at::ScalarType dtype) {
  return numel(shape) * static_cast<int64_t>(c10::elementSize(dtype));
}

int64_t quotient_up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

Partitioner FixedShardsPartitioner(int64_t num_shards) {
  check_positive("FixedShardsPartitioner", "num_shards", num_shards);
  return [num_shards](const Shape& shape, at::ScalarType) {
    return std::max<int64_t>(1, std::min(num_shards, rows_of(shape)));
  };
}

Partitioner MinSizePartitioner(int64_t min_shard_bytes, int64_t max_shards) {
  check_positive("MinSizePartitioner", "min_shard_bytes", min_shard_bytes);
  check_positive("MinSizePartitioner", "max_shards", max_shards);
  return [=](const Shape& shape, at::ScalarType dtype) {
    const int64_t parts = quotient_up(bytes_of(shape, dtype), min_shard_bytes);
    return std::max<int64_t>(1, std::min({rows_of(shape), max_shards, parts}));
  };
}

Partitioner MaxSizePartitioner(int64_t max_shard_bytes, std::optional<int64_t> max_shards) {
  check_positive("MaxSizePartitioner", "max_shard_bytes", max_shard_bytes);
  if (max_shards) check_positive("MaxSizePartitioner", "max_shards", *max_shards);
  return [=](const Shape& shape, at::ScalarType dtype) -> int64_t {
    const int64_t bytes = bytes_of(shape, dtype), rows = rows_of(shape);
    if (bytes == 0) return 1;
    const int64_t rows_each = std::max<int64_t>(1, max_shard_bytes / (bytes / rows));
    return std::min(quotient_up(rows, rows_each), max_shards.value_or(rows));
  };
}

}  // namespace tessera::strategy
