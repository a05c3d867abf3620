#pragma once

#include <c10/core/ScalarType.h>

#include <tessera/framework/mesh/layout_file.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// What a run stands on: the layout map of the layouts file on the mesh that options, file and
/// application agree on.
struct Setup {
  LayoutMap layouts;
  at::ScalarType dtype;
};

/// Sets the random seed and the default dtype, makes the mesh, reads the layouts file; without one,
/// `built_in` takes its place. Collective. Throws ConfigError, FileError, LayoutError, MeshError,
/// CommError.
Setup set_up(const CommonOptions& options, const MeshDims& fallback,
             const LayoutFile& built_in = {});

}  // namespace tessera::app
