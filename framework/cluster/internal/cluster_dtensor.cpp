#include <algorithm>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

std::vector<HostPort> read_jobs(const std::string& jobs) {
  std::vector<HostPort> addresses;
  std::set<std::string> seen;
  for (size_t from = 0; from <= jobs.size();) {
    const size_t comma = std::min(jobs.find(',', from), jobs.size());
    const std::string job = jobs.substr(from, comma - from);
    const std::string where = str("DTENSOR_JOBS, job ", addresses.size());
    addresses.push_back(read_host_port(where, job));
    if (!seen.insert(job).second) {
      throw ConfigError(where, "must have a unique address", in_quotes(job) + " again",
                        "give every job another port");
    }
    from = comma + 1;
  }
  return addresses;
}

/// Without DTENSOR_JOBS there can be only one client.
void check_alone(const Environment& variables) {
  const auto id = variables.find_integer("DTENSOR_CLIENT_ID", 0, max_processes - 1);
  const auto count = variables.find_integer("DTENSOR_NUM_CLIENTS", 1, max_processes);
  if (id.value_or(0) > 0) variables.require("DTENSOR_JOBS", "DTENSOR_CLIENT_ID");
  if (count.value_or(1) > 1) variables.require("DTENSOR_JOBS", "DTENSOR_NUM_CLIENTS");
}

}  // namespace

std::optional<Cluster> cluster_from_dtensor(const Environment& variables) {
  const auto jobs = variables.find("DTENSOR_JOBS");
  if (!jobs) {
    check_alone(variables);
    return std::nullopt;
  }
  const std::vector<HostPort> addresses = read_jobs(*jobs);
  Cluster cluster;
  cluster.size = static_cast<int>(addresses.size());
  const auto count = variables.find_integer("DTENSOR_NUM_CLIENTS", 1, max_processes);
  if (count.value_or(cluster.size) != cluster.size) {
    throw ConfigError("DTENSOR_NUM_CLIENTS",
                      str("must be the number of jobs in DTENSOR_JOBS, ", cluster.size),
                      std::to_string(*count), "unset it");
  }
  cluster.rank =
      variables.require_integer("DTENSOR_CLIENT_ID", "DTENSOR_JOBS", 0, cluster.size - 1);
  cluster.local_rank = local_rank_of(addresses, cluster.rank);
  cluster.address = addresses[0].host;
  cluster.port = addresses[0].port;
  cluster.source = "DTENSOR_JOBS";
  return cluster;
}

}  // namespace tessera::detail
