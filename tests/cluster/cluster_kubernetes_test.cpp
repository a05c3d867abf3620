#include "tests/cluster/cluster_cases.hpp"
#include "tests/support/catch.hpp"

namespace cluster_kubernetes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// The variables of a TrainJob of four nodes, with changes; an empty value unsets.
Values pet(const Values& more) {
  Values values = {{"PET_NNODES", "4"},
                   {"PET_NODE_RANK", "2"},
                   {"PET_NPROC_PER_NODE", "1"},
                   {"PET_MASTER_ADDR", "job-node-0-0.job"},
                   {"PET_MASTER_PORT", "29400"}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

/// The variables of a pod of an indexed Job with four pods, with changes.
Values pod(const Values& more) {
  Values values = {{"JOB_COMPLETION_INDEX", "3"},
                   {"WORLD_SIZE", "4"},
                   {"MASTER_ADDR", "digits-workers-0-0.digits"}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

}  // namespace

TEST_CASE("reads the variables of a TrainJob of Kubeflow", "[cluster]") {
  const std::string expected = "PET_NODE_RANK worker 2/4 local 0 job-node-0-0.job:29400";
  check_all({
      {pet({}), expected},
      {pet({{"PET_NPROC_PER_NODE", ""}}), expected},
      {pet({{"PET_NPROC_PER_NODE", "auto"}}), expected},
      {pet({{"PET_NPROC_PER_NODE", "gpu"}}), expected},
      {pet({{"PET_NPROC_PER_NODE", "cpu"}}), expected},
      {pet({{"PET_MASTER_PORT", ""}}), "PET_NODE_RANK worker 2/4 local 0 job-node-0-0.job:29500"},
      {pet({{"TESSERA_JOB", "x"}}), expected + " job x"},
      {pet({{"JOB_COMPLETION_INDEX", "2"}}), expected},
      {{{"PET_NNODES", "1"}, {"PET_NODE_RANK", "0"}}, "PET_NODE_RANK worker 0/1"},
      // What torchrun and launch set for their processes comes first.
      {pet({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "h"}}), "RANK worker 5/8"},
      {pet({{"PET_NPROC_PER_NODE", "2"}}),
       "[PET_NPROC_PER_NODE] each node has one process, which holds all devices of it. Received: "
       "2. To fix: set numProcPerNode: 1 in the TrainJob, or start the program by torchrun or, on "
       "a single node, by launch -n 2."},
      {pet({{"PET_NPROC_PER_NODE", "xpu"}}), "[PET_NPROC_PER_NODE] must be an integer from 1"},
      {pet({{"PET_NPROC_PER_NODE", "0"}}), "[PET_NPROC_PER_NODE] must be an integer from 1"},
      {pet({{"PET_NNODES", "1:4"}}),
       "[PET_NNODES] must be an integer from 1 to 65536. Received: \"1:4\""},
      {pet({{"PET_NNODES", ""}}), "[PET_NNODES] must be set if PET_NODE_RANK is"},
      {pet({{"PET_NODE_RANK", ""}}), "[PET_NODE_RANK] must be set if PET_NNODES is"},
      {pet({{"PET_NODE_RANK", "4"}}), "[PET_NODE_RANK] must be an integer from 0 to 3"},
      {pet({{"PET_MASTER_ADDR", ""}}), "[PET_MASTER_ADDR] must be set if PET_NNODES is"},
      {pet({{"PET_MASTER_PORT", "70000"}}), "[PET_MASTER_PORT] must be an integer from 1"},
  });
}

TEST_CASE("reads the index of a pod in a Job of Kubernetes", "[cluster]") {
  const std::string expected = "JOB_COMPLETION_INDEX worker 3/4 local 0 digits-workers-0-0.digits:";
  check_all({
      {pod({}), expected + "29500"},
      {pod({{"MASTER_PORT", "1234"}}), expected + "1234"},
      {pod({{"RANK", "1"}}), "RANK worker 1/4"},
      {{{"JOB_COMPLETION_INDEX", "0"}, {"WORLD_SIZE", "1"}}, "JOB_COMPLETION_INDEX worker 0/1"},
      // Every indexed Job has it, also one whose pods are runs of their own.
      {{{"JOB_COMPLETION_INDEX", "3"}}, " worker 0/1"},
      {pod({{"JOB_COMPLETION_INDEX", ""}}), "[RANK] must be set if WORLD_SIZE is"},
      {pod({{"JOB_COMPLETION_INDEX", "4"}}),
       "[JOB_COMPLETION_INDEX] must be an integer from 0 to 3"},
      {pod({{"WORLD_SIZE", ""}}), "[WORLD_SIZE] must be set if MASTER_ADDR is"},
      {pod({{"MASTER_ADDR", ""}}), "[MASTER_ADDR] must be set if WORLD_SIZE is"},
      {pod({{"MASTER_PORT", "x"}}), "[MASTER_PORT] must be an integer from 1 to 65535"},
  });
}

}  // namespace cluster_kubernetes_test
