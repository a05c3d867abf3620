#include <tessera/framework/strategy/cluster_resolver.hpp>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace cluster_resolver_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using Catch::Contains;

namespace {

EnvironmentLookup of(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

const std::string two_workers =
    R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}})";

}  // namespace

TEST_CASE("TFConfigClusterResolver reads only TF_CONFIG") {
  const Cluster cluster = TFConfigClusterResolver(of({{"TF_CONFIG", two_workers}, {"RANK", "7"}}));
  CHECK(cluster.source == "TF_CONFIG");
  CHECK(cluster.rank == 1);
  CHECK(cluster.size == 2);
  const TFConfigClusterResolver alone(of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}));
  CHECK(alone.source.empty());
  CHECK(alone.size == 1);
}

TEST_CASE("SlurmClusterResolver reads only Slurm's variables") {
  const SlurmClusterResolver cluster(of({{"TF_CONFIG", two_workers},
                                         {"SLURM_PROCID", "2"},
                                         {"SLURM_NTASKS", "4"},
                                         {"SLURM_LOCALID", "0"},
                                         {"SLURM_JOB_ID", "1234"},
                                         {"SLURM_STEP_NODELIST", "n[1-4]"}}));
  CHECK(cluster.source == "SLURM_PROCID");
  CHECK(cluster.rank == 2);
  CHECK(cluster.size == 4);
  CHECK(cluster.address == "n1");
}

TEST_CASE("SimpleClusterResolver takes the cluster as arguments") {
  const ClusterSpec spec = {{"chief", {"c:1"}}, {"worker", {"w:1", "w:2"}}, {"ps", {"p:1"}}};
  const SimpleClusterResolver worker(spec, "worker", 1);
  CHECK(worker.type == TaskType::worker);
  CHECK(worker.rank == 2);
  CHECK(worker.size == 3);
  CHECK(worker.tasks.size() == 3);
  CHECK(SimpleClusterResolver(spec, "ps", 0).type == TaskType::ps);
  CHECK_THROWS_WITH(SimpleClusterResolver(spec, "worker", 2), Contains("TF_CONFIG: task.index"));
  CHECK_THROWS_WITH(SimpleClusterResolver(spec, "wroker", 0), Contains("TF_CONFIG: task.type"));
  CHECK_THROWS_AS(SimpleClusterResolver({}, "worker", 0), ConfigError);
}

}  // namespace cluster_resolver_test
