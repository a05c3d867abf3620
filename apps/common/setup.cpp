#include "apps/common/setup.hpp"

#include <utility>

#include <tessera/framework/io/tensor_board.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/tensor/float32_precision.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

#include "apps/common/processes.hpp"

namespace tessera::app {

using namespace detail;

void set_dtypes(const CommonOptions& options) {
  set_dtype_policy(dtype_policy(options.dtype));
  set_float32_matmul_precision(options.matmul_precision);
}

Setup set_up(const CommonOptions& options, const MeshDims& fallback, const LayoutFile& built_in) {
  set_random_seed(options.seed);
  set_dtypes(options);
  const LayoutFile file = options.layouts.empty() ? built_in : read_layout_file(options.layouts);
  const Mesh mesh = choose_mesh(options, file.mesh.value_or(MeshDims{}), fallback);
  for (Device device : mesh.local_devices()) ExecutionContext::of(device);
  LayoutMap layouts = make_layout_map(file, mesh);
  if (options.world_size_invariant) layouts.set_world_size_invariant(true);
  return {std::move(layouts), default_dtype_policy().variable};
}

FitOptions fit_options(const CommonOptions& options) {
  FitOptions fit{.batch_size = options.batch_size,
                 .epochs = options.epochs,
                 .verbose = static_cast<int>(options.verbose),
                 .shuffle = options.shuffle,
                 .steps_per_epoch = options.steps_per_epoch,
                 .memory_limit = options.memory_limit.value_or(0),
                 .peak_flops = options.peak_flops,
                 .elastic = elastic_options(options)};
  if (!options.tensorboard.empty()) {
    fit.callbacks.push_back(TensorBoard({.log_dir = options.tensorboard}));
  }
  return fit;
}

std::string mesh_text(const Mesh& mesh) { return describe_mesh(mesh); }

}  // namespace tessera::app
