#pragma once

#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/mesh/mesh.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// What the options say of the processes of the run.
DistributedOptions distributed_options(const CommonOptions& options);

/// Whether the run computes on GPUs: `--device cuda`, or `auto` where there are any.
bool runs_on_gpus(const CommonOptions& options);

/// Whether this process is the one that prints and writes what is not cut over processes. Throws
/// ConfigError if options or environment describe the run wrongly.
bool is_first_process(const CommonOptions& options);

/// How much this process prints: `--verbose`, but nothing unless it is the first.
int64_t verbosity(const CommonOptions& options);

/// Throws ConfigError if `mesh` is too large, or `--devices` of each process are not all of it.
void check_device_count(const CommonOptions& options, const MeshDims& mesh);

/// Sizes of the mesh to run on, over all processes: `--mesh`, else `from_layouts` (the layouts
/// file's), else `batch=N` for `--devices` of all processes, else on GPUs for those there are, else
/// `fallback`, or a device for each process where they do not divide it. Throws ConfigError as
/// check_device_count() and find_cluster() do.
MeshDims choose_mesh_dims(const CommonOptions& options, const MeshDims& from_layouts,
                          const MeshDims& fallback);

/// The mesh of choose_mesh_dims(), on virtual CPUs or GPUs as `--device` says; a mesh that no
/// option or file of the user's asks for lies on what GPUs there are. Collective. Throws
/// as create_distributed_mesh() does, too.
Mesh choose_mesh(const CommonOptions& options, const MeshDims& from_layouts,
                 const MeshDims& fallback);

}  // namespace tessera::app
