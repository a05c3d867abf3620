#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

constexpr int lowest_port = 15000;
constexpr size_t port_digits = 4;

/// Returns the name of the step's variable if it is set, else that of the job's.
std::string either(const Environment& variables, const std::string& step, const std::string& job) {
  return variables.find(step) ? step : job;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// Returns "03" for "03-05,09"; empty if the text is not a list of numbers and ranges.
std::string first_number(const std::string& ranges) {
  for (size_t from = 0; from <= ranges.size();) {
    const size_t comma = std::min(ranges.find(',', from), ranges.size());
    const std::string range = ranges.substr(from, comma - from);
    const size_t dash = std::min(range.find('-'), range.size());
    if (!is_number(range.substr(0, dash))) return "";
    if (dash < range.size() && !is_number(range.substr(dash + 1))) return "";
    from = comma + 1;
  }
  return ranges.substr(0, ranges.find_first_of("-,"));
}

/// Returns a port made from the last digits of the job's number, as jobs may share hosts.
int port_of(const std::string& job) {
  if (!is_number(job)) {
    throw ConfigError("SLURM_JOB_ID", "must be a number", in_quotes(job), "set MASTER_PORT");
  }
  return lowest_port + std::stoi(job.substr(job.size() - std::min(job.size(), port_digits)));
}

/// Whether this is an interactive shell in an allocation, or was started in one without srun: not a
/// task of a step, whatever the allocation's size. srun gives the programs that it starts there the
/// shell's job name, but a step of their own.
bool is_in_shell(const Environment& variables) {
  const std::string name = variables.find("SLURM_JOB_NAME").value_or("");
  if (name != "bash" && name != "interactive") return false;
  const std::string tasks = variables.find("SLURM_STEP_NUM_TASKS").value_or("1");
  // The shell of srun --pty bash is step 0 itself.
  const bool first_step = variables.find("SLURM_STEP_ID").value_or("0") == "0";
  return tasks == "1" || (name == "bash" && first_step);
}

/// Whether PMIx has to bring what Slurm's variables lack: a secret. Otherwise they suffice, also on
/// hosts without libpmix.
bool is_for_pmix(const Environment& variables, const ClusterFlags& flags) {
  if (!variables.find("PMIX_RANK") || !variables.find("PMIX_NAMESPACE")) return false;
  for (const char* name : {"MASTER_ADDR", "TESSERA_SECRET", "TESSERA_SECRET_FILE"}) {
    if (variables.find(name)) return false;
  }
  return !flags.insecure && variables.find_integer("TESSERA_INSECURE", 0, 1) != 1;
}

}  // namespace

std::string first_slurm_host(const std::string& where, const std::string& list) {
  const auto fail = [&]() -> std::string {
    throw ConfigError(where, "must be a list of hosts as Slurm writes it", in_quotes(list),
                      "set MASTER_ADDR to the host of task 0");
  };
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const size_t end = list.find(']', at);
    if (end == list.npos) return fail();
    const std::string number = first_number(list.substr(at + 1, end - at - 1));
    if (number.empty()) return fail();
    host += number;
    at = end + 1;
  }
  const bool plain = host.find_first_of("[] \t\n/:") == host.npos;
  return host.empty() || !plain ? fail() : host;
}

std::optional<Cluster> cluster_from_slurm(const Environment& variables, const ClusterFlags& flags) {
  if (!variables.find("SLURM_PROCID")) return std::nullopt;
  if (is_in_shell(variables)) return std::nullopt;
  const std::string count = either(variables, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
  Cluster cluster;
  cluster.size = variables.find_integer(count, 1, max_processes).value_or(1);
  if (cluster.size == 1) return std::nullopt;
  if (is_for_pmix(variables, flags)) {
    return cluster_from_pmix(variables, flags, "PMIX_RANK",
                             "give all tasks the same TESSERA_SECRET_FILE or TESSERA_SECRET");
  }
  cluster.rank = variables.require_integer("SLURM_PROCID", count, 0, cluster.size - 1);
  cluster.local_rank =
      variables.find_integer("SLURM_LOCALID", 0, cluster.size - 1).value_or(cluster.rank);
  cluster.job = variables.require("SLURM_JOB_ID", "SLURM_PROCID");
  if (const auto address = variables.find("MASTER_ADDR")) {
    cluster.address = *address;
  } else {
    const std::string hosts = either(variables, "SLURM_STEP_NODELIST", "SLURM_NODELIST");
    cluster.address = first_slurm_host(hosts, variables.require(hosts, "SLURM_PROCID"));
  }
  const auto port = variables.find_integer("MASTER_PORT", 1, 65535);
  cluster.port = port ? *port : port_of(cluster.job);
  if (const auto step = variables.find("SLURM_STEP_ID")) cluster.job += "." + *step;
  cluster.source = "SLURM_PROCID";
  return cluster;
}

}  // namespace tessera::detail
