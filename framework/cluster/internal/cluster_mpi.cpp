#include <algorithm>
#include <map>
#include <mutex>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>
#include <tessera/framework/cluster/internal/free_port.hpp>
#include <tessera/framework/cluster/internal/host_addresses.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>
#include <tessera/framework/cluster/internal/pmix_client.hpp>

namespace tessera::detail {
namespace {

constexpr const char* mpi_size = "OMPI_COMM_WORLD_SIZE";
constexpr const char* mpi_rank = "OMPI_COMM_WORLD_RANK";
constexpr const char* pmix_job = "PMIX_NAMESPACE";
constexpr const char* pmix_key = "tessera.rank0";
constexpr std::chrono::minutes pmix_timeout{5};

/// The text that rank 0 leaves for the other ranks, parsed.
struct RankZero {
  int port = 0;
  std::string secret;  ///< "": the processes have one already, or none
  std::string host;
  std::vector<std::string> addresses;  ///< none: all ranks are on one host
};

std::string text_of(const RankZero& zero) {
  return str(zero.port, "\n", zero.secret, "\n", zero.host, "\n", join(zero.addresses, "\n"));
}

RankZero read_rank_zero(const std::string& where, const std::string& text) {
  std::vector<std::string> lines;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  lines.resize(std::max<size_t>(lines.size(), 4));
  RankZero zero{.port = read_integer(where + ", port of rank 0", lines[0], 1, 65535),
                .secret = lines[1],
                .host = lines[2],
                .addresses = {lines.begin() + 3, lines.end()}};
  std::erase(zero.addresses, "");
  return zero;
}

/// The conditions under which rank 0 draws a secret.
struct SecretNeeds {
  bool given = false;
  bool encrypt = false;
};

SecretNeeds secret_needs(const Environment& variables, const ClusterFlags& flags) {
  return {.given = variables.find("TESSERA_SECRET") || variables.find("TESSERA_SECRET_FILE"),
          .encrypt = flags.encrypt || variables.find_integer("TESSERA_ENCRYPT", 0, 1) == 1};
}

RankZero new_rank_zero(bool on_one_host, const SecretNeeds& needs) {
  RankZero zero;
  zero.port = free_port();
  zero.host = host_name();
  if (!on_one_host) zero.addresses = own_addresses();
  // PMIx sends it between hosts unencrypted: enough to keep others out, not to keep a secret.
  if (!needs.given && (on_one_host || !needs.encrypt)) zero.secret = make_secret();
  return zero;
}

/// Whether "0" is among the ranks of this process' host, "0,1,2".
bool is_with_rank_zero(const std::string& ranks) { return ranks == "0" || ranks.starts_with("0,"); }

std::string address_of(const std::string& where, const RankZero& zero, bool same_host) {
  if (same_host) return "127.0.0.1";
  std::string address = reachable_address(zero.host, zero.addresses);
  if (!address.empty()) return address;
  throw ConfigError(where, str("rank 0's host, ", in_quotes(zero.host), ", has an IP address"),
                    str("none that this host lacks: ", quoted_list(zero.addresses)),
                    "set MASTER_ADDR to one that all hosts reach");
}

/// Asks the launcher; without MASTER_ADDR the processes agree on rank 0's address.
Cluster ask_pmix(const Environment& variables, const SecretNeeds& needs, const std::string& job,
                 const std::string& where, const std::string& otherwise) {
  PmixClient client(variables.find("TESSERA_PMIX_LIBRARY").value_or(""), job, where, otherwise);
  Cluster cluster;
  cluster.size = read_integer(where + ", processes of the job",
                              str(client.job_number(pmix::job_size)), 1, max_processes);
  cluster.rank = read_integer(where, str(client.rank()), 0, cluster.size - 1);
  cluster.local_rank = read_integer(where + ", rank on the host",
                                    str(client.own_number(pmix::local_rank)), 0, cluster.size - 1);
  cluster.source = where;
  if (cluster.size == 1) return cluster;
  cluster.job = job;
  if (read_master(variables, cluster)) return cluster;
  const bool on_one_host =
      client.job_number(pmix::local_size) == static_cast<uint32_t>(cluster.size);
  RankZero zero;
  if (cluster.rank == 0) {
    zero = new_rank_zero(on_one_host, needs);
    client.leave(pmix_key, text_of(zero));
  }
  client.fence(pmix_timeout);
  if (cluster.rank > 0) zero = read_rank_zero(where, client.text_of(0, pmix_key));
  // Rank 0 listens beyond its host only if its own address tells of others.
  if (cluster.rank == 0 && !on_one_host) {
    cluster.address = zero.addresses.empty() ? zero.host : zero.addresses.front();
  } else {
    const bool same = on_one_host || is_with_rank_zero(client.job_text(pmix::local_peers));
    cluster.address = address_of(where, zero, same);
  }
  cluster.port = zero.port;
  if (!needs.given) cluster.secret = zero.secret;
  return cluster;
}

}  // namespace

bool read_master(const Environment& variables, Cluster& cluster) {
  const auto address = variables.find("MASTER_ADDR");
  if (!address) return false;
  cluster.address = *address;
  cluster.port = variables.find_integer("MASTER_PORT", 1, 65535).value_or(default_port);
  return true;
}

Cluster cluster_from_pmix(const Environment& variables, const ClusterFlags& flags,
                          const std::string& where, const std::string& otherwise) {
  const SecretNeeds needs = secret_needs(variables, flags);
  const std::string job = variables.require(pmix_job, where);
  const auto rank = variables.find("PMIX_RANK").value_or("");
  // A program looks for its cluster several times, but all processes meet in a fence only once.
  static std::mutex mutex;
  static std::map<std::string, Cluster> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::string key = str(job, "\n", rank, "\n", needs.given, needs.encrypt, "\n",
                              variables.find("MASTER_ADDR").value_or(""), "\n",
                              variables.find("MASTER_PORT").value_or(""));
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = ask_pmix(variables, needs, job, where, otherwise);
}

std::optional<Cluster> cluster_from_mpi(const Environment& variables, const ClusterFlags& flags) {
  const auto job = variables.find(pmix_job);
  if (!variables.find(mpi_size) && !variables.find(mpi_rank)) {
    // srun's own processes are tasks of Slurm first.
    const bool of_slurm = job && job->starts_with("slurm.") && variables.find("SLURM_PROCID");
    if (!job || !variables.find("PMIX_RANK") || of_slurm) return std::nullopt;
    return cluster_from_pmix(variables, flags, "PMIX_RANK",
                             "set RANK, WORLD_SIZE and MASTER_ADDR (the host of rank 0)");
  }
  Cluster cluster;
  cluster.size = variables.require_integer(mpi_size, mpi_rank, 1, max_processes);
  cluster.rank = variables.require_integer(mpi_rank, mpi_size, 0, cluster.size - 1);
  cluster.local_rank =
      variables.find_integer("OMPI_COMM_WORLD_LOCAL_RANK", 0, cluster.size - 1).value_or(0);
  cluster.source = mpi_rank;
  if (cluster.size == 1) return cluster;
  cluster.job = job.value_or("");
  if (read_master(variables, cluster)) return cluster;
  const char* const otherwise = "set MASTER_ADDR to the host of rank 0: mpirun -x MASTER_ADDR=HOST";
  if (job) return cluster_from_pmix(variables, flags, mpi_rank, otherwise);
  throw ConfigError(mpi_rank, "the processes of mpirun agree on the address of rank 0 by PMIx",
                    "no PMIX_NAMESPACE", otherwise);
}

}  // namespace tessera::detail
