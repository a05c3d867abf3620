#pragma once

#include <memory>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/internal/engine.hpp>

namespace tessera::detail {

/// Creates the engine for the devices and hosts of a run: NCCL for GPUs; for CPUs shared memory
/// between processes of one host, and Gloo between hosts, whose connections begin with a proof of
/// the secret of `access` and are encrypted if it says so. `first` is this process's first device.
/// Collective. Throws CommError, and ConfigError for what this build or machine lacks and, on every
/// rank, for GPUs of several hosts if traffic is to be encrypted.
std::shared_ptr<Engine> make_engine(const std::shared_ptr<Coordination>& coordination,
                                    const DistributedOptions& options, const JobAccess& access,
                                    Device first);

}  // namespace tessera::detail
