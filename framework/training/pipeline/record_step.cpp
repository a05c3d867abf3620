#include <tessera/framework/training/pipeline/record_step.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/framework/training/internal/plan_step.hpp>

namespace tessera::detail {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw ConfigError("pipeline", "a step consists of operations that can be run without its code",
                    why, "use Tessera's layers, losses and metrics, and compute with DTensors");
}

}  // namespace

Layout with_microbatches(const Layout& data, const Mesh& rows) {
  std::vector<std::vector<int>> axes = data.axes();
  for (std::vector<int>& axis : axes) {
    for (int& dim : axis) ++dim;
  }
  if (!axes.empty()) axes[0].insert(axes[0].begin(), 0);
  return Layout::from_axes(rows, std::move(axes));
}

RecordedStep record_step(const Mesh& rows, const Batch& batch, const std::vector<Variable>& known,
                         const std::function<std::vector<DTensor>(const Batch&)>& step) {
  RecordedStep recorded;
  const AbstractScope plans_only(rows);
  const Batch planned = abstract_like(batch);
  GraphRecorder recorder(planned, true);
  {
    const TracerScope listening(&recorder);
    for (const DTensor& result : step(planned)) {
      recorded.results.push_back(recorder.number_of(result));
    }
  }
  if (!recorder.why().empty()) refuse(recorder.why());
  recorded.graph = recorder.finish();
  for (size_t v = 0; v < recorded.graph.variables.size(); ++v) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Variable& variable) {
      return variable.id() == recorded.graph.variable_ids[v];
    });
    if (found == known.end()) {
      refuse("a Variable was used that is not one of the model's: " + recorded.graph.variables[v]);
    }
    recorded.variables.push_back(*found);
  }
  return recorded;
}

}  // namespace tessera::detail
