#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/training/data_views.hpp>
#include <tessera/framework/training/run_facts.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {

std::vector<at::Tensor> Model::predict_all(const DatasetRef& data, const PredictOptions& options) {
  if (!compiled()) compile(CompileOptions());
  Training& state = training("predict");
  // A callback may compile the model anew.
  const std::shared_ptr<Training> kept = training_;
  const Mesh& mesh = state.layouts.mesh();
  return noting_failure(mesh, [&] {
    check_data("predict", data);
    check_positive("predict", "batch_size", options.batch_size);
    check_positive("predict", "steps", options.steps);
    check_has_end("predict", data, "steps", options.steps);
    const BatchLoaderOptions batches{
        .batch_size = options.batch_size, .steps = options.steps, .layouts = state.layouts};
    const CallbackList callbacks(options.callbacks, *this, mesh,
                                 {.steps = epoch_steps(data, batches), .verbose = options.verbose});
    if (!mesh.is_local()) {
      RunFacts facts = run_facts(*this, state.options, state.layouts, options.callbacks);
      add_batches(facts, data, options.batch_size, options.steps);
      check_equal_everywhere(mesh, "predict", facts);
    }
    if (!state.placed) ensure_placed(batch_shapes(data));
    BatchLoader loader(data, batches);
    return state.predict_all(*this, loader, callbacks);
  });
}

std::vector<at::Tensor> Model::Training::predict_all(Model& model, BatchLoader& loader,
                                                     const CallbackList& callbacks) {
  std::vector<std::vector<at::Tensor>> parts;
  do_everywhere([&] { callbacks.begin(Phase::predict); });
  run("predict", Phase::predict, loader, callbacks, [&](Examples&& examples, int64_t) {
    std::vector<at::Tensor> given = predict(model, std::move(examples));
    parts.resize(given.size());
    for (size_t i = 0; i < given.size(); ++i) parts[i].push_back(std::move(given[i]));
  });
  do_everywhere([&] { callbacks.end(Phase::predict, {}); });
  std::vector<at::Tensor> whole;
  for (const auto& part : parts) whole.push_back(at::cat(part));
  return whole;
}

at::Tensor Model::predict(const DatasetRef& data, const PredictOptions& options) {
  const std::vector<at::Tensor> outputs = predict_all(data, options);
  if (outputs.size() == 1) return outputs[0];
  throw ConfigError("predict", "the model has one output", str(outputs.size(), " outputs"),
                    "use predict_all()");
}

}  // namespace tessera
