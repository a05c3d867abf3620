#include <tessera/framework/parameter_server/partitioner.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

void check_positive(const char* partitioner, const char* what, int64_t value) {
  if (value >= 1) return;
  throw ConfigError(partitioner, str(what, " is a whole number of at least 1"), str(value),
                    "give a larger one");
}

int64_t rows_of(const Shape& shape) { return shape.empty() ? 1 : shape[0]; }

int64_t bytes_of(const Shape& shape, at::ScalarType dtype) {
  return numel(shape) * static_cast<int64_t>(c10::elementSize(dtype));
}

int64_t quotient_up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

int64_t count_parts(const Variable& variable, const Partitioner& partitioner) {
  if (!partitioner || variable.shape().empty()) return 1;
  const int64_t count = partitioner(variable.shape(), variable.dtype());
  const int64_t most = std::max<int64_t>(1, rows_of(variable.shape()));
  if (count < 1 || count > most) {
    throw ConfigError(variable.path(), str("a partitioner gives from 1 to ", most, " parts"),
                      str(count), "one part for each row at most");
  }
  if (count > 1 && variable.spec().constraint) {
    throw ConfigError(variable.path(), "a variable with a constraint rests on one server",
                      str(count, " parts"),
                      "let variable_partitioner give 1 for its shape, or drop the constraint");
  }
  return count;
}

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
    const int64_t wanted = quotient_up(bytes_of(shape, dtype), min_shard_bytes);
    return std::max<int64_t>(1, std::min({rows_of(shape), max_shards, wanted}));
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

std::vector<Part> PartPlan::of_server(int server) const {
  std::vector<Part> here;
  for (const Part& part : parts) {
    if (part.server == server) here.push_back(part);
  }
  return here;
}

std::string PartPlan::describe() const {
  std::vector<std::string> lines;
  for (size_t v = 0; v < paths.size(); ++v) {
    lines.push_back(str(one_line(paths[v]), " ", safetensors_dtype(dtypes[v], paths[v]),
                        trained[v] ? " trained:" : ":"));
  }
  for (const Part& part : parts) {
    lines[part.variable] += str(" ", to_string(part.shape), " on ps ", part.server);
  }
  return join(lines, "; ");
}

PartPlan plan_parts(const std::vector<Variable>& variables, const Partitioner& partitioner,
                    int servers, int first_server) {
  PartPlan plan;
  plan.servers = servers;
  std::vector<int> counts(static_cast<size_t>(servers));
  int server = first_server % servers;
  for (size_t v = 0; v < variables.size(); ++v) {
    const Variable& variable = variables[v];
    plan.paths.push_back(variable.path());
    plan.dtypes.push_back(variable.dtype());
    plan.trained.push_back(variable.trainable());
    const int64_t count = count_parts(variable, partitioner);
    for (int64_t i = 0; i < count; ++i) {
      Part part{v, server, counts[static_cast<size_t>(server)]++, {0, 1}, variable.shape()};
      if (!part.shape.empty()) {
        part.rows = shard_interval(part.shape[0], count, i);
        part.shape[0] = part.rows.size();
      }
      plan.parts.push_back(std::move(part));
      server = (server + 1) % servers;
    }
  }
  return plan;
}

}  // namespace tessera::strategy
