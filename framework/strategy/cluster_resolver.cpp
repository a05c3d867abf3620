#include <tessera/framework/strategy/cluster_resolver.hpp>

#include <cstdlib>

#include <tessera/framework/base/json.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

/// Returns an environment with only the variables whose names `keep` accepts.
template <class Shows>
EnvironmentLookup filtered(const EnvironmentLookup& environment, const Shows& keep) {
  return [=](const char* name) -> const char* {
    if (!keep(std::string(name))) return nullptr;
    return environment ? environment(name) : std::getenv(name);
  };
}

Cluster from_tf_config(const EnvironmentLookup& environment) {
  return find_cluster(
      {}, filtered(environment, [](const std::string& name) { return name == "TF_CONFIG"; }));
}

Cluster from_slurm(const EnvironmentLookup& environment) {
  return find_cluster({}, filtered(environment, [](const std::string& name) {
                        return name.rfind("SLURM_", 0) == 0 || name.rfind("MASTER_", 0) == 0;
                      }));
}

Cluster from_spec(const ClusterSpec& spec, const std::string& task_type, int task_id) {
  const Json json = {{"cluster", spec}, {"task", {{"type", task_type}, {"index", task_id}}}};
  const std::string text = to_json_text(json, -1);
  return from_tf_config([&](const char*) { return text.c_str(); });
}

}  // namespace

TFConfigClusterResolver::TFConfigClusterResolver(const EnvironmentLookup& environment)
    : Cluster(from_tf_config(environment)) {}

SlurmClusterResolver::SlurmClusterResolver(const EnvironmentLookup& environment)
    : Cluster(from_slurm(environment)) {}

SimpleClusterResolver::SimpleClusterResolver(const ClusterSpec& cluster_spec,
                                             const std::string& task_type, int task_id)
    : Cluster(from_spec(cluster_spec, task_type, task_id)) {}

}  // namespace tessera::strategy
