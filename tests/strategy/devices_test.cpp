#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/mesh/internal/weight_placement.hpp>
#include <tessera/framework/strategy/strategies.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/warnings.hpp"

namespace devices_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using Catch::Contains;

TEST_CASE("devices are named in TensorFlow's formats and in this library's") {
  for (const char* name : {"cpu:3", "CPU:3", "/cpu:3", "/CPU:3", "/device:CPU:3", "device:cpu:3",
                           "/job:localhost/replica:0/task:0/device:CPU:3"}) {
    CHECK(parse_device("f", name) == Device{Device::Type::cpu, 3});
  }
  for (const char* name :
       {"", "cpu", "/cpu", "tpu:0", "cpu:x", "cpu:-1", "cpu:0:1", "/job:worker/cpu:0",
        "/job:localhost/replica:0/task:1/device:CPU:0", "/job:localhost/cpu:0"}) {
    INFO(name);
    CHECK_THROWS_AS(parse_device("f", name), MeshError);
  }
  CHECK_THROWS_WITH(
      MirroredStrategy({.devices = {"tpu:0"}}),
      "[MirroredStrategy, devices] a device of this process has a name such as \"cpu:0\" or "
      "\"/gpu:0\". Received: \"tpu:0\". To fix: use such a name.");
}

TEST_CASE("a GPU that does not exist is an error of one line") {
  const int gpus = gpu_count();
  for (const std::string kind : {"/gpu:", "GPU:", "cuda:", "/device:GPU:"}) {
    CHECK_THROWS_WITH(OneDeviceStrategy(str(kind, gpus)),
                      Contains(str("[OneDeviceStrategy, device] this process has ", gpus, " GPU")));
  }
}

TEST_CASE("the devices of MirroredStrategy are its replicas") {
  const MirroredStrategy three({.devices = {"cpu:0", "/cpu:1", "CPU:2"}});
  CHECK(three.name() == "MirroredStrategy");
  CHECK(three.num_replicas_in_sync() == 3);
  CHECK(three.mesh().local_devices() == virtual_cpus(3));
  CHECK(three.layouts().mesh() == three.mesh());
  CHECK_FALSE(weight_placement_of(three.mesh()));
  CHECK(MirroredStrategy().num_replicas_in_sync() == std::max(1, gpu_count()));
  CHECK_THROWS_WITH(MirroredStrategy({.devices = {"cpu:0", "/cpu:0"}}),
                    "[MirroredStrategy, devices] each device is named once. Received: \"/cpu:0\" "
                    "again. To fix: leave it out the second time.");
}

TEST_CASE("cross-device ops select the reduction of a mirrored mesh") {
  for (const CrossDeviceOps& ops : {CrossDeviceOps(HierarchicalCopyAllReduce(2)),
                                    CrossDeviceOps(ReductionToOneDevice("cpu:1"))}) {
    const MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1"}, .cross_device_ops = ops});
    CHECK(strategy.mesh().is_local());
    CHECK(strategy.mesh().communicator() != nullptr);
  }
  CHECK(MirroredStrategy({.devices = {"cpu:0"}}).mesh().communicator() == nullptr);
}

TEST_CASE("OneDeviceStrategy has one replica") {
  const OneDeviceStrategy strategy("/cpu:1");
  CHECK(strategy.name() == "OneDeviceStrategy");
  CHECK(strategy.num_replicas_in_sync() == 1);
  CHECK(to_string(strategy.mesh().local_devices()[0]) == "cpu:1");
}

TEST_CASE("MultiWorkerMirroredStrategy without a cluster has one worker") {
  const MultiWorkerMirroredStrategy strategy(
      {.communication_options = {.implementation = CommunicationImplementation::ring},
       .devices_per_worker = 3});
  CHECK(strategy.name() == "MultiWorkerMirroredStrategy");
  CHECK(strategy.num_replicas_in_sync() == 3);
  CHECK(strategy.mesh().is_local());
  CHECK(strategy.mesh().local_devices() == virtual_cpus(3));
  CHECK_THROWS_WITH(MultiWorkerMirroredStrategy({.devices_per_worker = 0}),
                    Contains("[MultiWorkerMirroredStrategy, devices_per_worker] each worker needs "
                             "at least one device. Received: 0"));
}

TEST_CASE("NCCL without GPUs falls back to RING, with a warning") {
  if (gpu_count() > 0) return test::skip("there are GPUs here");
  const tessera::test::Warnings warnings;
  const MultiWorkerMirroredStrategy strategy(
      {.communication_options = {.implementation = CommunicationImplementation::nccl}});
  CHECK(strategy.mesh().local_devices() == virtual_cpus(1));
  CHECK(warnings.text() ==
        "Warning: MultiWorkerMirroredStrategy: NCCL was requested, but there are "
        "no GPUs; using RING\n");
}

TEST_CASE("strategies are made by name") {
  for (const std::string& name : strategy_names()) {
    if (name == "tpu") continue;
    const auto strategy = make_strategy(name, 1);
    CHECK(strategy->num_replicas_in_sync() == 1);
  }
  CHECK(make_strategy("mirrored", 3)->num_replicas_in_sync() == 3);
  CHECK(make_strategy("multi_worker_mirrored", 2)->num_replicas_in_sync() == 2);
  CHECK(make_strategy("central_storage", 4)->num_replicas_in_sync() == 4);
  CHECK(make_strategy("default").get() == &default_strategy());
  CHECK_THROWS_AS(make_strategy("tpu"), ConfigError);
  CHECK_THROWS_WITH(make_strategy("mirored"),
                    "[make_strategy, name] one of tf.distribute's strategies. Received: "
                    "\"mirored\". To fix: write \"mirrored\".");
  CHECK_THROWS_WITH(make_strategy("one_device", 2),
                    Contains("\"one_device\" has one device. Received: 2"));
  CHECK_THROWS_AS(make_strategy("default", 2), ConfigError);
  CHECK_THROWS_AS(make_strategy("mirrored", 0), ConfigError);
}

}  // namespace devices_test
