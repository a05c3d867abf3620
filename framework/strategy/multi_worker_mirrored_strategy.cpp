#include <tessera/framework/strategy/multi_worker_mirrored_strategy.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

Mesh workers_mesh(const MultiWorkerMirroredOptions& options) {
  if (options.devices_per_worker < 1) {
    throw ConfigError("MultiWorkerMirroredStrategy, devices_per_worker",
                      "each worker needs at least one device", str(options.devices_per_worker),
                      "pass 1 or more");
  }
  const CommunicationImplementation requested = options.communication_options.implementation;
  const bool gpus = requested != CommunicationImplementation::ring && gpu_count() > 0;
  DistributedOptions distributed = options.distributed;
  distributed.devices = options.devices_per_worker;
  distributed.device_type = gpus ? Device::Type::cuda : Device::Type::cpu;
  if (const auto timeout = options.communication_options.timeout) distributed.timeout = *timeout;
  const Mesh mesh = create_distributed_mesh({{"batch", -1}}, distributed);
  if (requested == CommunicationImplementation::nccl && !gpus) {
    warn_once(mesh,
              "MultiWorkerMirroredStrategy: NCCL was requested, but there are no GPUs; using RING");
  }
  return mesh;
}

}  // namespace

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(const MultiWorkerMirroredOptions& options)
    : Strategy("MultiWorkerMirroredStrategy", workers_mesh(options)) {}

}  // namespace tessera::strategy
