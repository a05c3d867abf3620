#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/data_views.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {

std::vector<at::Tensor> Model::predict_all(const DatasetHandle& data,
                                           const PredictOptions& options) {
  if (!compiled()) compile(CompileOptions());
  Training& state = training("predict");
  // A callback may compile the model anew.
  const std::shared_ptr<Training> kept = training_;
  const Mesh& mesh = state.layouts.mesh();
  return reporting_failure(mesh, [&] {
    check_passes("predict", data, options);
    return state.over("predict", *this, data, options,
                      [&](BatchLoader& loader, const CallbackList& callbacks) {
                        return state.predict_all(*this, loader, callbacks);
                      });
  });
}

std::vector<at::Tensor> Model::Training::predict_all(Model& model, BatchLoader& loader,
                                                     const CallbackList& callbacks) {
  std::vector<std::vector<at::Tensor>> parts;
  do_on_all_ranks([&] { callbacks.begin(Phase::predict); });
  run("predict", Phase::predict, loader, callbacks, [&](Examples&& examples, int64_t) {
    std::vector<at::Tensor> given = predict(model, std::move(examples));
    parts.resize(given.size());
    for (size_t i = 0; i < given.size(); ++i) parts[i].push_back(std::move(given[i]));
  });
  do_on_all_ranks([&] { callbacks.end(Phase::predict, {}); });
  std::vector<at::Tensor> whole;
  for (const auto& part : parts) whole.push_back(at::cat(part));
  return whole;
}

at::Tensor Model::predict(const DatasetHandle& data, const PredictOptions& options) {
  const std::vector<at::Tensor> outputs = predict_all(data, options);
  if (outputs.size() == 1) return outputs[0];
  throw ConfigError("predict", "the model has one output", str(outputs.size(), " outputs"),
                    "use predict_all()");
}

}  // namespace tessera
