#pragma once

#include <string>

#include <c10/core/ScalarType.h>

#include <tessera/framework/mesh/layout_file.hpp>
#include <tessera/framework/training/options.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// The result of set_up(): the layout map of the layouts file on the mesh of choose_mesh().
struct Setup {
  LayoutMap layouts;
  at::ScalarType dtype;  ///< dtype of weights and data
};

/// Sets the default dtype policy and the precision of float32 products.
void set_dtypes(const CommonOptions& options);

/// Sets the random seed and the dtypes, makes the mesh and reads the layouts file (default:
/// `built_in`). Collective. Throws ConfigError, FileError, LayoutError, MeshError, CommError.
Setup set_up(const CommonOptions& options, const MeshDims& fallback,
             const LayoutFile& built_in = {});

/// Returns the options of fit that the command line names; with --tensorboard its callback is among
/// them.
FitOptions fit_options(const CommonOptions& options);

/// Returns the mesh and the GPUs it is on: "batch=4 on 2 GPUs".
std::string mesh_text(const Mesh& mesh);

}  // namespace tessera::app
