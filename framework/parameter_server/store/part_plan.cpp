#include <tessera/framework/parameter_server/store/part_plan.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {

using namespace strategy;

namespace {

int64_t count_parts(const Variable& variable, const Partitioner& partitioner) {
  if (!partitioner || variable.shape().empty()) return 1;
  const int64_t count = partitioner(variable.shape(), variable.dtype());
  const int64_t rows = std::max<int64_t>(1, variable.shape()[0]);
  if (count < 1 || count > rows) {
    throw ConfigError(variable.path(), str("a partitioner must return from 1 to ", rows, " parts"),
                      str(count), "return at most one part per row");
  }
  if (count > 1 && variable.spec().constraint) {
    throw ConfigError(variable.path(), "a variable with a constraint must be on one server",
                      str(count, " parts"),
                      "let variable_partitioner return 1 for its shape, or drop the constraint");
  }
  return count;
}

}  // namespace

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

}  // namespace tessera::detail
