#pragma once

#include <c10/core/ScalarType.h>

#include <tessera/framework/mesh/layout_file.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// What a run stands on: the layout map of the layouts file on the mesh that options, file and
/// application agree on.
struct Setup {
  LayoutMap layouts;
  at::ScalarType dtype;  ///< of weights and data
};

/// Sets the default dtype, and how exactly products of float32 are made.
void set_dtypes(const CommonOptions& options);

/// Sets the random seed and the dtypes, makes the mesh, reads the layouts file; without one,
/// `built_in` takes its place. Collective. Throws ConfigError, FileError, LayoutError, MeshError,
/// CommError.
Setup set_up(const CommonOptions& options, const MeshDims& fallback,
             const LayoutFile& built_in = {});

}  // namespace tessera::app
