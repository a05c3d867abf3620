#pragma once

#include <functional>
#include <vector>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/training/internal/step_graph.hpp>

namespace tessera::detail {

/// Name of the mesh dimension whose coordinates are the microbatches of a batch.
inline constexpr const char* microbatch_dim = "microbatch";

/// Returns a layout of data on the mesh `rows`, which has the dimension of microbatches before
/// those of the layout's mesh: the first axis is sharded over microbatches, and then as in `data`.
Layout with_microbatches(const Layout& data, const Mesh& rows);

/// A step of a model that can be run without its code.
struct RecordedStep {
  StepGraph graph;
  std::vector<int32_t> results;     ///< numbers of the values that it returns
  std::vector<Variable> variables;  ///< by number
};

/// Records a step from planning it for a batch on the mesh `rows`, which has the dimensions of the
/// model's and others. `known` are the variables that it may read. Throws ConfigError for a step
/// that needs its code, such as one that reads a number on the host.
RecordedStep record_step(const Mesh& rows, const Batch& batch, const std::vector<Variable>& known,
                         const std::function<std::vector<DTensor>(const Batch&)>& step);

}  // namespace tessera::detail
