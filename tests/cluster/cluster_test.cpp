#include <tessera/framework/cluster/cluster.hpp>

#include <tessera/framework/cluster/internal/environment.hpp>

#include "tests/cluster/cluster_cases.hpp"
#include "tests/support/catch.hpp"

namespace cluster_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

Values rank_values(const std::string& rank, const std::string& size) {
  return {{"RANK", rank}, {"WORLD_SIZE", size}, {"MASTER_ADDR", "h"}};
}

Values jobs(const std::string& list, const std::string& id) {
  return {{"DTENSOR_JOBS", list}, {"DTENSOR_CLIENT_ID", id}};
}

Values slurm(const Values& more) {
  Values values = {{"SLURM_PROCID", "1"},
                   {"SLURM_NTASKS", "4"},
                   {"SLURM_JOB_ID", "123456"},
                   {"SLURM_NODELIST", "gpu[03-05,09],cpu1"}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

}  // namespace

TEST_CASE("a process without cluster settings is a cluster of one", "[cluster]") {
  const Cluster cluster = find_cluster({}, environment_of({}));
  CHECK(cluster.size == 1);
  CHECK(cluster.rank == 0);
  CHECK(cluster.source.empty());
  check_all({
      {{{"RANK", ""}, {"WORLD_SIZE", ""}, {"TF_CONFIG", ""}}, " worker 0/1"},
      {{{"TF_CONFIG", "{}"}}, " worker 0/1"},
      {{{"DTENSOR_CLIENT_ID", "0"}, {"DTENSOR_NUM_CLIENTS", "1"}}, " worker 0/1"},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, " worker 0/1"},
      {slurm({{"SLURM_JOB_NAME", "bash"}}), " worker 0/1"},
      {{{"TESSERA_JOB", "x"}, {"MASTER_ADDR", "h"}}, " worker 0/1 local 0 :0"},
  });
}

TEST_CASE("reads RANK and WORLD_SIZE as torchrun sets them", "[cluster]") {
  check_all({
      {rank_values("2", "4"), "RANK worker 2/4 local 2 h:29500"},
      {{{"RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "1"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "1234"},
        {"TESSERA_JOB", "ab"}},
       "RANK worker 5/8 local 1 10.0.0.1:1234 job ab"},
      {{{"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"MASTER_ADDR", "h"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
       "RANK worker 1/2 local 1 h:29501"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "RANK worker 0/1"},
      {{{"RANK", "0"}}, "[WORLD_SIZE] must be set if RANK is. Received: nothing"},
      {{{"WORLD_SIZE", "2"}}, "[RANK] must be set if WORLD_SIZE is"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "[MASTER_ADDR] must be set if RANK is"},
      {rank_values("4", "4"), "[RANK] must be an integer from 0 to 3. Received: \"4\""},
      {rank_values("-1", "4"), "[RANK] must be an integer from 0 to 3. Received: \"-1\""},
      {rank_values("1.0", "4"), "[RANK] must be an integer from 0 to 3"},
      {rank_values(" 1", "4"), "[RANK] must be an integer"},
      {rank_values("0", "0"), "[WORLD_SIZE] must be an integer from 1 to 65536"},
      {rank_values("0", "four"), "[WORLD_SIZE] must be an integer"},
      {rank_values("0", "99999999999999999999"), "[WORLD_SIZE] must be an integer"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "65536"}},
       "[MASTER_PORT] must be an integer from 1 to 65535"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"LOCAL_RANK", "2"}},
       "[LOCAL_RANK] must be an integer from 0 to 1"},
  });
}

TEST_CASE("reads DTENSOR_JOBS and DTENSOR_CLIENT_ID", "[cluster]") {
  Values counted = jobs("a:1,b:2", "1");
  counted["DTENSOR_NUM_CLIENTS"] = "2";
  Values miscounted = counted;
  miscounted["DTENSOR_NUM_CLIENTS"] = "3";
  check_all({
      {jobs("a:1,b:2,a:3", "2"), "DTENSOR_JOBS worker 2/3 local 1 a:1"},
      {counted, "DTENSOR_JOBS worker 1/2 local 0 a:1"},
      {miscounted,
       "[DTENSOR_NUM_CLIENTS] must be the number of jobs in DTENSOR_JOBS, 2. Received: 3"},
      {jobs("a:1,b:2", "2"), "[DTENSOR_CLIENT_ID] must be an integer from 0 to 1. Received: \"2\""},
      {{{"DTENSOR_JOBS", "a:1"}}, "[DTENSOR_CLIENT_ID] must be set if DTENSOR_JOBS is"},
      {jobs("a:1,", "0"), "[DTENSOR_JOBS, job 1] must be a host and a port. Received: \"\""},
      {jobs("a:1,:2", "0"), "[DTENSOR_JOBS, job 1] must be a host and a port"},
      {jobs("a:1,a:1", "0"), "[DTENSOR_JOBS, job 1] must have a unique address"},
      {jobs("a:1,::1:2", "0"), "[DTENSOR_JOBS, job 1] must be a host and a port"},
      {jobs("a:1,b:99999", "0"), "[DTENSOR_JOBS, job 1, port] must be an integer"},
      {{{"DTENSOR_CLIENT_ID", "1"}}, "[DTENSOR_JOBS] must be set if DTENSOR_CLIENT_ID is"},
      {{{"DTENSOR_NUM_CLIENTS", "2"}}, "[DTENSOR_JOBS] must be set if DTENSOR_NUM_CLIENTS is"},
  });
}

TEST_CASE("reads the variables of a Slurm step", "[cluster]") {
  Values nowhere = slurm({});
  nowhere.erase("SLURM_NODELIST");
  Values nameless = slurm({});
  nameless.erase("SLURM_JOB_ID");
  check_all({
      {slurm({}), "SLURM_PROCID worker 1/4 local 1 gpu03:18456 job 123456"},
      {slurm({{"SLURM_STEP_NUM_TASKS", "2"},
              {"SLURM_STEP_NODELIST", "cpu7"},
              {"SLURM_LOCALID", "0"},
              {"SLURM_STEP_ID", "3"}}),
       "SLURM_PROCID worker 1/2 local 0 cpu7:18456 job 123456.3"},
      {slurm({{"MASTER_ADDR", "x"}, {"MASTER_PORT", "7"}}), "SLURM_PROCID worker 1/4 local 1 x:7"},
      {slurm({{"SLURM_JOB_ID", "7"}}), "SLURM_PROCID worker 1/4 local 1 gpu03:15007 job 7"},
      {slurm({{"SLURM_PROCID", "4"}}), "[SLURM_PROCID] must be an integer from 0 to 3"},
      {slurm({{"SLURM_NTASKS", "x"}}), "[SLURM_NTASKS] must be an integer"},
      {slurm({{"SLURM_LOCALID", "-2"}}), "[SLURM_LOCALID] must be an integer"},
      {slurm({{"SLURM_JOB_ID", "a1"}}), "[SLURM_JOB_ID] must be a number"},
      {nameless, "[SLURM_JOB_ID] must be set if SLURM_PROCID is"},
      {nowhere, "[SLURM_NODELIST] must be set if SLURM_PROCID is"},
      {slurm({{"SLURM_NODELIST", "gpu[03"}}), "[SLURM_NODELIST] must be a list of hosts"},
  });
}

TEST_CASE("a shell in a Slurm allocation is alone, but not what srun starts in it", "[cluster]") {
  const auto in_shell = [](const std::string& name, const std::string& step,
                           const std::string& tasks) {
    return slurm(
        {{"SLURM_JOB_NAME", name}, {"SLURM_STEP_ID", step}, {"SLURM_STEP_NUM_TASKS", tasks}});
  };
  check_all({
      {slurm({{"SLURM_JOB_NAME", "interactive"}}), " worker 0/1"},
      {in_shell("interactive", "4294967290", "1"), " worker 0/1"},
      {in_shell("bash", "0", "4"), " worker 0/1"},
      {in_shell("interactive", "0", "4"), "SLURM_PROCID worker 1/4 local 1 gpu03:18456"},
      {in_shell("bash", "1", "4"), "SLURM_PROCID worker 1/4 local 1 gpu03:18456"},
  });
}

TEST_CASE("processes of a launcher that is not read are refused", "[cluster]") {
  const auto of = [](const std::string& size, const std::string& rank, const std::string& count) {
    return Values{{size, count}, {rank, "0"}};
  };
  for (const auto& [size, rank] : {std::pair{"PMI_SIZE", "PMI_RANK"},
                                   {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                   {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
                                   {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"}}) {
    check_all({
        {of(size, rank, "2"), str("[", size,
                                  "] the processes of a launcher know each other, 2 of "
                                  "them. Received: nothing that Tessera reads. To fix: start them "
                                  "with launch or torchrun, or as sh -c 'RANK=$",
                                  rank, " WORLD_SIZE=$", size, " MASTER_ADDR=HOST exec PROGRAM'")},
        {of(size, rank, "1"), " worker 0/1"},
        {of(size, rank, ""), " worker 0/1"},
        {of(size, rank, "many"), " worker 0/1"},
    });
    Values told = of(size, rank, "4");
    for (const auto& [name, value] : rank_values("2", "4")) told[name] = value;
    Values alone = of(size, rank, "4");
    for (const auto& [name, value] : rank_values("0", "1")) alone[name] = value;
    check_all({{told, "RANK worker 2/4"}, {alone, "RANK worker 0/1"}});
    CHECK(outcome(of(size, rank, "4"), {"", -1, 1}) == "--processes worker 0/1 local 0 :0");
  }
  for (const char* rank : {"PMIX_RANK", "PALS_RANKID", "ALPS_APP_PE"}) {
    check_all({
        {{{rank, "1"}},
         str("[", rank,
             "] the processes of a launcher know each other. Received: "
             "rank 1, and nothing that Tessera reads")},
        {{{rank, "0"}}, " worker 0/1"},
        {{{rank, "0"}, {"PMI_SIZE", "1"}}, " worker 0/1"},
    });
  }
  // srun with PMI sets both, and MPICH's mpiexec inherits the task of its daemon.
  check_all({
      {slurm({{"PMI_SIZE", "4"}, {"PMI_RANK", "1"}, {"PMIX_RANK", "1"}}),
       "SLURM_PROCID worker 1/4"},
      {slurm({{"PMI_SIZE", "8"}}),
       "[PMI_SIZE] the processes of a launcher know each other, 8 of them. Received: "
       "4 tasks of Slurm"},
  });
}

TEST_CASE("finds the first host of Slurm's node list", "[cluster]") {
  CHECK(first_slurm_host("x", "gpu[03-05,09],cpu1") == "gpu03");
  CHECK(first_slurm_host("x", "cpu1,gpu[1-2]") == "cpu1");
  CHECK(first_slurm_host("x", "rack[2-3]n[007,9].lan") == "rack2n007.lan");
  for (const char* list : {"", ",a", "a[", "a[]", "a[x]", "a[1-]", "a[1,]", "a]", "a b", "[[1]]"}) {
    CAPTURE(list);
    CHECK_THROWS_AS(first_slurm_host("x", list), ConfigError);
  }
}

TEST_CASE("flags override the environment and are checked", "[cluster]") {
  Values all = tf(two_workers, R"({"type": "worker", "index": 1})");
  all.merge(Values{{"DTENSOR_JOBS", "c:1"}, {"DTENSOR_CLIENT_ID", "0"}});
  all.merge(rank_values("2", "4"));
  all.merge(slurm({}));
  CHECK(outcome(all, {"h:5", 1, 3}) == "--coordinator worker 1/3 local 1 h:5");
  CHECK(outcome(all).rfind("TF_CONFIG", 0) == 0);
  all.erase("TF_CONFIG");
  CHECK(outcome(all).rfind("DTENSOR_JOBS", 0) == 0);
  all.erase("DTENSOR_JOBS");
  CHECK(outcome(all).rfind("RANK", 0) == 0);
  all.erase("RANK");
  all.erase("WORLD_SIZE");
  CHECK(outcome(all).rfind("SLURM_PROCID", 0) == 0);

  const auto begins = [](const ClusterFlags& flags, const std::string& expected) {
    const std::string text = outcome({}, flags);
    INFO(text);
    CHECK(text.rfind(expected, 0) == 0);
  };
  begins({"", -1, 1}, "--processes worker 0/1");
  begins({"h:5", -1, -1}, "[--processes] must be given");
  begins({"", 0, 2}, "[--coordinator] must be given");
  begins({"h:5", -1, 2}, "[--rank] must be given");
  begins({"h:5", 2, 2}, "[--rank] must be an integer from 0 to 1");
  begins({"h:5", 0, 0}, "[--processes] must be an integer from 1");
  begins({"h", 0, 2}, "[--coordinator] must be a host and a port");
  begins({"h:70000", 0, 2}, "[--coordinator, port] must be an integer");
}

}  // namespace cluster_test
