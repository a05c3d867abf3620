#pragma once

#include <optional>
#include <vector>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/dataset.hpp>
#include <tessera/framework/nn/loss.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/nn/optimizer.hpp>

namespace tessera {

/// Arguments of keras.Model.compile, and where things lie.
struct CompileOptions {
  OptimizerRef optimizer = {};
  LossRef loss = {};
  std::vector<MetricRef> metrics = {};
  /// Where weights and batches lie. Undefined: replicated over `mesh`.
  LayoutMap layouts = {};
  /// Needed only without `layouts`. Undefined: default_mesh().
  Mesh mesh = {};
};

/// Arguments of keras.Model.fit.
struct FitOptions {
  int64_t batch_size = 32;  ///< rows of a global batch
  int64_t epochs = 1;
  int verbose = 1;          ///< 0 silent, 1 bar, 2 a line an epoch
  DatasetRef validation_data = {};
  bool shuffle = true;
  int64_t initial_epoch = 0;
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  std::optional<int64_t> validation_steps = std::nullopt;
  std::optional<int64_t> validation_batch_size = std::nullopt;
};

/// Arguments of keras.Model.evaluate.
struct EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  std::optional<int64_t> steps = std::nullopt;
};

/// Arguments of keras.Model.predict.
struct PredictOptions {
  int64_t batch_size = 32;
  int verbose = 0;
  std::optional<int64_t> steps = std::nullopt;
};

}  // namespace tessera
