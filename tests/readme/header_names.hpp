#pragma once

// Names that the examples in comments of public headers use. Compiled only, never run.

#include <iostream>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/datasets/arrow/read_parquet.hpp>
#include <tessera/framework/parameter_server/cluster_coordinator.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>
#include <tessera/framework/strategy/strategies.hpp>
#include <tessera/tessera.hpp>

namespace tessera {

using namespace strategy;

extern ModelHandle model;
extern LayerHandle hidden;
extern DTensor x, prompt, next, loss, d_loss, g_loss;
extern GradientTape tape;
extern FitOptions options;
extern OptimizerHandle optimizer;
extern Mesh mesh;
extern Variable kernel, bias;
extern std::vector<Variable> variables;
DTensor penalty(const DTensor& output);

extern DatasetHandle data;
extern at::Tensor images, captions, labels, weights, boxes, classes;
extern std::vector<std::string> texts;
extern TextVectorization vectorize;

extern Table table;
extern at::Tensor target;
extern FeatureSpace space;
extern DTensor numbers, amounts, city, month;

extern SymbolicTensor left, right, query, value, queries, keys;

struct ScaleLayer : Layer {
  ScaleLayer(double factor, const LayerOptions& options);
  std::string class_name() const override;
  Shape output_shape(const Shapes& inputs) const override;
};

extern MirroredStrategy mirrored;
extern DistributedDataset batches;
StepValues train_step(const Batch& batch);
ClosureValue step(WorkerContext& worker);

}  // namespace tessera
