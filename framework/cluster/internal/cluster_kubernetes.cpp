#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

/// Checks that there is one process on each node, with all of its devices, as nobody starts others.
/// "auto", "cpu" and "gpu" leave the number to the program.
void check_processes_per_node(const Environment& variables) {
  const std::string name = "PET_NPROC_PER_NODE";
  const std::string text = variables.find(name).value_or("1");
  if (text == "auto" || text == "cpu" || text == "gpu") return;
  const int count = read_integer(name, text, 1, max_processes);
  if (count == 1) return;
  throw ConfigError(name, "each node has one process, which holds all devices of it",
                    std::to_string(count),
                    str("set numProcPerNode: 1 in the TrainJob, or start the program by torchrun "
                        "or, on a single node, by launch -n ",
                        count));
}

}  // namespace

std::optional<Cluster> cluster_from_pet(const Environment& variables) {
  if (!variables.find("PET_NNODES") && !variables.find("PET_NODE_RANK")) return std::nullopt;
  Cluster cluster;
  cluster.size = variables.require_integer("PET_NNODES", "PET_NODE_RANK", 1, max_processes);
  cluster.rank = variables.require_integer("PET_NODE_RANK", "PET_NNODES", 0, cluster.size - 1);
  check_processes_per_node(variables);
  if (cluster.size > 1) cluster.address = variables.require("PET_MASTER_ADDR", "PET_NNODES");
  cluster.port = variables.find_integer("PET_MASTER_PORT", 1, 65535).value_or(default_port);
  cluster.source = "PET_NODE_RANK";
  return cluster;
}

std::optional<Cluster> cluster_from_job_index(const Environment& variables) {
  const char* const index = "JOB_COMPLETION_INDEX";
  // Kubernetes sets it in every indexed Job, whose pods may as well be runs of their own.
  const bool together = variables.find("WORLD_SIZE") || variables.find("MASTER_ADDR");
  if (!variables.find(index) || variables.find("RANK") || !together) return std::nullopt;
  Cluster cluster;
  cluster.size = variables.require_integer("WORLD_SIZE", "MASTER_ADDR", 1, max_processes);
  cluster.rank = variables.require_integer(index, "WORLD_SIZE", 0, cluster.size - 1);
  if (cluster.size > 1) cluster.address = variables.require("MASTER_ADDR", "WORLD_SIZE");
  cluster.port = variables.find_integer("MASTER_PORT", 1, 65535).value_or(default_port);
  cluster.source = index;
  return cluster;
}

}  // namespace tessera::detail
