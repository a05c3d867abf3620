#pragma once

#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/mesh/mesh.hpp>
#include <tessera/framework/training/options.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// Returns the options for create_distributed_mesh().
DistributedOptions distributed_options(const CommonOptions& options);

/// Returns the options of a fit whose processes come and go.
ElasticOptions elastic_options(const CommonOptions& options);

/// Returns whether the run computes on GPUs: `--device cuda`, or `auto` if there are any.
bool runs_on_gpus(const CommonOptions& options);

/// Returns whether this is rank 0, which prints and writes files that are not sharded. Throws
/// ConfigError if options or environment describe an invalid run.
bool is_first_process(const CommonOptions& options);

/// Returns `--verbose` on the first process, 0 on others.
int64_t verbosity(const CommonOptions& options);

/// Throws ConfigError if `mesh` is too large or too small for the processes, or if `--devices`
/// times the processes is not its size.
void check_device_count(const CommonOptions& options, const MeshDims& mesh);

/// Returns the dimensions of the mesh over all processes. The first of these that applies:
/// `--mesh`; `from_layouts` (the layouts file's); `batch=N` for `--devices` on every process; on
/// GPUs, `batch=N` for all GPUs of a single process or one GPU of each of several, times
/// `--virtual-devices`; `fallback` if its size is divisible by the processes; one device per
/// process. Throws ConfigError as check_device_count() and find_cluster() do.
MeshDims choose_mesh_dims(const CommonOptions& options, const MeshDims& from_layouts,
                          const MeshDims& fallback);

/// Makes the mesh of choose_mesh_dims(), on virtual CPUs or GPUs as `--device` says. A mesh that no
/// option or layouts file specifies uses the available GPUs, several devices on each if necessary.
/// Collective. Also throws what create_distributed_mesh() throws.
Mesh choose_mesh(const CommonOptions& options, const MeshDims& from_layouts,
                 const MeshDims& fallback);

}  // namespace tessera::app
