#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/training/pipeline/record_step.hpp>
#include <tessera/framework/training/pipeline/staged_step.hpp>
#include <tessera/tessera.hpp>

namespace tessera::test {

/// Paths that begin so, and their stage; the last that fits counts.
using StagesByPath = std::vector<std::pair<std::string, int32_t>>;

inline std::vector<int32_t> stages_of(const std::vector<std::string>& paths,
                                      const StagesByPath& stages) {
  std::vector<int32_t> all;
  for (const std::string& path : paths) {
    all.push_back(0);
    for (const auto& [begin, stage] : stages) {
      if (path.starts_with(begin)) all.back() = stage;
    }
  }
  return all;
}

/// Packs rows as a pipeline does: sharded over microbatches, then as the layouts say.
inline Batch pack_in_microbatches(const Examples& examples, const LayoutMap& layouts,
                                  const Mesh& rows) {
  const auto packed = [&](const std::vector<at::Tensor>& tensors, const char* name) {
    std::vector<DTensor> values;
    for (const at::Tensor& tensor : tensors) {
      const Layout data = layouts.data_layout(name, tensor.dim(), values.size());
      values.push_back(pack(tensor, detail::with_microbatches(data, rows)));
    }
    return values;
  };
  Batch batch;
  batch.rows = examples.x[0].size(0);
  batch.x = packed(examples.x, "x");
  batch.y = packed(examples.y, "y");
  batch.sample_weight = packed(examples.sample_weight, "sample_weight");
  return batch;
}

/// Records a training step of a compiled model that is built, for a batch of such rows.
template <class ModelType>
detail::RecordedStep recorded_step(const ModelType& model, const Batch& batch, const Mesh& rows) {
  return detail::record_step(rows, batch, model->weights(), [&](const Batch& planned) {
    return std::vector{model.model().train_step(planned).loss()};
  });
}

}  // namespace tessera::test
