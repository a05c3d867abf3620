// mpirun and PMIx, with an imitated library of PMIx (tests/support/fake_pmix).

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/cluster/internal/host_addresses.hpp>
#include <tessera/framework/cluster/internal/pmix_client.hpp>

#include "tests/cluster/cluster_cases.hpp"
#include "tests/cluster/coordination/coordination_ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace cluster_mpi_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

Values mpi(const std::string& rank, const std::string& size, const Values& more = {}) {
  Values values = {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", size}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

/// A job whose ranks are on `hosts`, "0,0,1", and exchange values through a folder.
class PmixJob {
 public:
  explicit PmixJob(std::string hosts, Values more = {})
      : hosts_(std::move(hosts)), more_(std::move(more)) {}

  Values variables(int rank) const {
    Values values = {{"PMIX_NAMESPACE", "job7"},
                     {"PMIX_RANK", std::to_string(rank)},
                     {"TESSERA_PMIX_LIBRARY", FAKE_PMIX_LIBRARY},
                     {"FAKE_PMIX_FOLDER", folder_.path()},
                     {"FAKE_PMIX_HOSTS", hosts_}};
    for (const auto& [name, value] : more_) values[name] = value;
    return values;
  }

  /// Starts a process that prints the outcome twice, and the secret.
  RankProcess start(int rank, const ClusterFlags& flags = {}, const Values& more = {}) const {
    Values values = variables(rank);
    for (const auto& [name, value] : more) values[name] = value;
    return RankProcess([values, flags](const RankProcess::Tell& tell) {
      // The library reads the variables of its process.
      for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
      tell(outcome(values, flags));
      tell(outcome(values, flags));
      tell(find_cluster(flags, environment_of(values)).secret);
    });
  }

  /// Returns the outcome of a rank whose fences wait for nobody.
  std::string alone(int rank, Values more = {}, const ClusterFlags& flags = {}) const {
    more["FAKE_PMIX_FENCE"] = "open";
    return start(rank, flags, more).line();
  }

  bool has(const std::string& file) const { return std::filesystem::exists(folder_ / file); }
  /// Leaves a text for the others, as rank 0 does.
  void plant(const std::string& text) const { write_file(folder_ / "tessera.rank0.0", text); }
  /// Returns the secret that rank 0 left.
  std::string secret() const {
    const std::string text = read_file(folder_ / "tessera.rank0.0");
    const size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

 private:
  std::string hosts_;
  Values more_;
  TempFolder folder_;
};

void check_begins(const std::string& received, const std::string& expected) {
  CHECK(received.substr(0, expected.size()) == expected);
  CHECK(received.find('\n') == received.npos);
}

const std::string own_secret(64, 'a');

ClusterFlags encrypting() {
  ClusterFlags flags;
  flags.encrypt = true;
  return flags;
}

ClusterFlags insecure() {
  ClusterFlags flags;
  flags.insecure = true;
  return flags;
}

}  // namespace

TEST_CASE("reads mpirun's variables where MASTER_ADDR names the host of rank 0", "[cluster]") {
  const Values master = {{"MASTER_ADDR", "h"}};
  check_all({
      {mpi("2", "4", master), "OMPI_COMM_WORLD_RANK worker 2/4 local 0 h:29500"},
      {mpi("2", "4",
           {{"MASTER_ADDR", "h"},
            {"MASTER_PORT", "7"},
            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
            {"PMIX_NAMESPACE", "815"}}),
       "OMPI_COMM_WORLD_RANK worker 2/4 local 1 h:7 job 815"},
      {mpi("0", "1"), "OMPI_COMM_WORLD_RANK worker 0/1 local 0 :0"},
      // mpirun's process is not the task of Slurm in which its daemon runs.
      {mpi("0", "1", {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1"}}),
       "OMPI_COMM_WORLD_RANK worker 0/1 local 0 :0"},
      {mpi("1", "2", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "RANK worker 0/1"},
      {mpi("4", "4", master), "[OMPI_COMM_WORLD_RANK] must be an integer from 0 to 3"},
      {mpi("0", "many", master), "[OMPI_COMM_WORLD_SIZE] must be an integer from 1 to 65536"},
      {mpi("", "2", master), "[OMPI_COMM_WORLD_RANK] must be set if OMPI_COMM_WORLD_SIZE is"},
      {mpi("1", "", master), "[OMPI_COMM_WORLD_SIZE] must be set if OMPI_COMM_WORLD_RANK is"},
      {mpi("1", "2", {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "0"}}),
       "[MASTER_PORT] must be an integer from 1 to 65535"},
      {mpi("1", "2"),
       "[OMPI_COMM_WORLD_RANK] the processes of mpirun agree on the address of rank 0 by PMIx. "
       "Received: no PMIX_NAMESPACE. To fix: set MASTER_ADDR to the host of rank 0: "
       "mpirun -x MASTER_ADDR=HOST"},
  });
}

TEST_CASE("the processes of one host agree on a port and a secret by PMIx", "[cluster]") {
  for (const char* source : {"PMIX_RANK", "OMPI_COMM_WORLD_RANK"}) {
    CAPTURE(source);
    const PmixJob job("0,0,0");
    std::vector<RankProcess> processes;
    for (int rank = 0; rank < 3; ++rank) {
      const bool is_mpi = source == std::string("OMPI_COMM_WORLD_RANK");
      processes.push_back(job.start(rank, {}, is_mpi ? mpi(std::to_string(rank), "3") : Values{}));
    }
    std::string port;
    for (int rank = 0; rank < 3; ++rank) {
      const std::string line = processes[static_cast<size_t>(rank)].line();
      const std::string begin = str(source, " worker ", rank, "/3 local ", rank, " 127.0.0.1:");
      check_begins(line, begin);
      const std::string rest = line.substr(std::min(begin.size(), line.size()));
      if (rank == 0) port = rest;
      CHECK(rest == port);
      // Later calls do not ask again.
      CHECK(processes[static_cast<size_t>(rank)].line() == line);
      CHECK(processes[static_cast<size_t>(rank)].line() == job.secret());
      CHECK(processes[static_cast<size_t>(rank)].wait() == 0);
      CHECK(job.has(str("finalized.", rank)));
    }
    CHECK(port.ends_with(" job job7"));
    CHECK(check_secret("x", job.secret()).size() == 64);
    CHECK_FALSE(job.has("fence1.0"));
  }
}

TEST_CASE("PMIx' processes keep their own secret", "[cluster]") {
  for (const char* name : {"TESSERA_SECRET", "TESSERA_SECRET_FILE"}) {
    const PmixJob job("0,0", {{name, own_secret}});
    check_begins(job.alone(0), "PMIX_RANK worker 0/2 local 0 127.0.0.1:");
    CHECK(job.secret().empty());
    job.plant(str("1234\n", std::string(64, 'b'), "\nh"));
    RankProcess process = job.start(1, {}, {{"FAKE_PMIX_FENCE", "open"}});
    CHECK(process.line() == "PMIX_RANK worker 1/2 local 1 127.0.0.1:1234 job job7");
    process.line();
    CHECK(process.line().empty());
  }
}

TEST_CASE("rank 0 tells the hosts of a PMIx job its addresses", "[cluster]") {
  const std::string across = "0,0,1";
  {
    const PmixJob job(across);
    const std::string received = job.alone(0);
    const std::vector<std::string> own = own_addresses();
    if (!own.empty()) check_begins(received, str("PMIX_RANK worker 0/3 local 0 ", own[0], ":"));
    CHECK(check_secret("x", job.secret()).size() == 64);
    check_begins(job.alone(1), "PMIX_RANK worker 1/3 local 1 127.0.0.1:");
    // Here all addresses of rank 0 are also of this "other" host.
    CHECK(job.alone(2).find("has an IP address. Received: none that this host lacks") !=
          std::string::npos);
  }
  // Encryption is for those who do not trust the network, on which PMIx' own data is readable.
  const PmixJob job(across);
  job.alone(0, {}, encrypting());
  CHECK(job.secret().empty());
  job.alone(0, {{"TESSERA_ENCRYPT", "1"}});
  CHECK(job.secret().empty());
  const PmixJob together("0,0");
  together.alone(0, {{"TESSERA_ENCRYPT", "1"}});
  CHECK(together.secret().size() == 64);

  job.plant("1234\nsecret\n127.0.0.1\n203.0.113.7\n203.0.113.8");
  CHECK(job.alone(2) == "PMIX_RANK worker 2/3 local 0 203.0.113.7:1234 job job7");
  job.plant("1234\nsecret\n203.0.113.8\n203.0.113.7\n203.0.113.8");
  CHECK(job.alone(2) == "PMIX_RANK worker 2/3 local 0 203.0.113.8:1234 job job7");
  for (const char* text : {"", "\n", "0\n", "66000\nx\ny\n203.0.113.7", "x"}) {
    job.plant(text);
    check_begins(job.alone(2),
                 "[PMIX_RANK, port of rank 0] must be an integer from 1 to 65535. Received: ");
  }
  check_begins(job.alone(2, {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "5"}}),
               "PMIX_RANK worker 2/3 local 0 h:5 job job7");
}

TEST_CASE("failures of PMIx are one line that names what failed", "[cluster]") {
  const std::string first = "[PMIX_RANK] PMIx serves the first program in each process of the ";
  for (const char* call :
       {"PMIx_Init", "PMIx_Put", "PMIx_Commit", "PMIx_Fence", "PMIx_Get pmix.job.size",
        "PMIx_Get pmix.lrank", "PMIx_Get pmix.local.size", "PMIx_Fence later"}) {
    CAPTURE(call);
    const PmixJob job("0,0");
    const std::string received = job.alone(0, {{"FAKE_PMIX_FAIL", call}});
    check_begins(received, first);
    CHECK(received.find("UNREACHABLE (-25). To fix: set RANK, WORLD_SIZE and MASTER_ADDR") !=
          std::string::npos);
    CHECK(received.find(std::string(call).substr(0, 8)) != std::string::npos);
    CHECK(job.has("finalized.0") == job.has("begun.0"));
  }
  const PmixJob job("0,0");
  const std::string absent = job.alone(1);
  check_begins(absent, first);
  CHECK(absent.find("PMIx_Get of tessera.rank0: NOT-FOUND (-46)") != std::string::npos);
  for (const char* key : {"pmix.job.size", "pmix.lrank"}) {
    check_begins(job.alone(0, {{"FAKE_PMIX_TYPE", key}}),
                 str("[PMIX_RANK] PMIx tells each process of its job. Received: PMIx_Get of ", key,
                     " returned no such value"));
  }
  check_begins(job.alone(0, {{"FAKE_PMIX_ALONE", "1"}}),
               "[PMIX_RANK] the launcher of the job \"job7\" answers. Received: PMIx_Init found");
  const std::string missing = job.alone(0, {{"TESSERA_PMIX_LIBRARY", "/none/libpmix.so"}});
  check_begins(missing,
               "[PMIX_RANK] the processes of mpirun or srun find each other by PMIx, a library of "
               "theirs. Received: /none/libpmix.so: cannot open shared object file");
  CHECK(missing.find("To fix: install it (Debian: libpmix2)") != std::string::npos);
  check_begins(job.alone(0, {{"TESSERA_PMIX_LIBRARY", "libm.so.6"}}),
               "[PMIX_RANK] the PMIx library is of version 3, 4 or 5. Received: one without "
               "PMIx_Init");
  CHECK(job.alone(0, {{"FAKE_PMIX_HOSTS", "0"}}) == "PMIX_RANK worker 0/1 local 0 :0");
}

TEST_CASE("a PMIx job whose processes do not all come ends with an error", "[cluster]") {
  const PmixJob job("0,0", {{"FAKE_PMIX_FENCE", "stuck"}});
  RankProcess process([&](const RankProcess::Tell& tell) {
    for (const auto& [name, value] : job.variables(0)) ::setenv(name.c_str(), value.c_str(), 1);
    PmixClient client(FAKE_PMIX_LIBRARY, "job7", "PMIX_RANK", "see below");
    tell("begun");
    client.fence(std::chrono::milliseconds(30));
  });
  CHECK(process.line() == "begun");
  CHECK(process.line() ==
        "[PMIX_RANK] all processes of the job meet, to agree on an address of rank 0. Received: "
        "after 0.03 s not all. To fix: look at the output of the others, or see below.");
}

TEST_CASE("tasks of srun use PMIx where they have no secret", "[cluster]") {
  const PmixJob job("0,0,1", {{"SLURM_PROCID", "2"},
                              {"SLURM_NTASKS", "3"},
                              {"SLURM_JOB_ID", "77"},
                              {"SLURM_NODELIST", "gpu[1-2]"},
                              {"PMIX_NAMESPACE", "slurm.pmix.77.0"}});
  job.plant("1234\nsecret\n127.0.0.1\n203.0.113.7");
  CHECK(job.alone(2) == "PMIX_RANK worker 2/3 local 0 203.0.113.7:1234 job slurm.pmix.77.0");
  const std::string by_slurm = "SLURM_PROCID worker 2/3 local 2 gpu1:15077 job 77";
  CHECK(job.alone(2, {{"TESSERA_SECRET", own_secret}}) == by_slurm);
  CHECK(job.alone(2, {{"TESSERA_SECRET_FILE", "x"}}) == by_slurm);
  CHECK(job.alone(2, {{"TESSERA_INSECURE", "1"}}) == by_slurm);
  CHECK(job.alone(2, {}, insecure()) == by_slurm);
  CHECK(job.alone(2, {{"PMIX_NAMESPACE", ""}}) == by_slurm);
  CHECK(job.alone(2, {{"MASTER_ADDR", "h"}}) == "SLURM_PROCID worker 2/3 local 2 h:15077 job 77");
  CHECK(job.alone(2, {{"SLURM_NTASKS", "1"}}).find("PMIX_RANK") != std::string::npos);
  check_begins(job.alone(2, {{"TESSERA_PMIX_LIBRARY", "/none"}}),
               "[PMIX_RANK] the processes of mpirun or srun find each other by PMIx");
  // PMIx of another launcher in an allocation of Slurm.
  CHECK(job.alone(2, {{"PMIX_NAMESPACE", "prte-5"}, {"TESSERA_SECRET", own_secret}}) ==
        "PMIX_RANK worker 2/3 local 0 203.0.113.7:1234 job prte-5");
}

TEST_CASE("an address that this host has too is not another host's", "[cluster]") {
  CHECK(reachable_address("127.0.0.1", {}).empty());
  CHECK(reachable_address("127.0.0.1", {"", "x", "203.0.113.256"}).empty());
  CHECK(reachable_address("127.0.0.1", own_addresses()).empty());
  std::vector<std::string> addresses = own_addresses();
  addresses.push_back("2001:db8::7");
  CHECK(reachable_address("127.0.0.1", addresses) == "2001:db8::7");
  CHECK(reachable_address("2001:db8:0::8", {"203.0.113.7", "2001:db8::8"}) == "2001:db8::8");
  for (const std::string& own : own_addresses()) {
    CHECK_FALSE(own.starts_with("127."));
    CHECK_FALSE(own.starts_with("fe80:"));
  }
}

}  // namespace cluster_mpi_test
