#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "apps/bench/op_works.hpp"

namespace tessera::bench {

using namespace detail;

/// Returns the block policies by name.
const std::vector<std::pair<std::string, BlockPolicy>>& block_policies();

/// The batches of a dataset in order, repeated endlessly.
class Batches {
 public:
  Batches(TensorDataset data, int64_t batch_size) : data_(std::move(data)), size_(batch_size) {}
  Examples next();

 private:
  TensorDataset data_;
  int64_t size_;
  int64_t count_ = 0;
};

/// Training steps of a compiled model, each from a batch on the host to its loss on the host.
class TrainingSteps {
 public:
  /// Runs a first step with fit(), which places the weights.
  TrainingSteps(const ModelHandle& model, const LayoutMap& layouts, const TensorDataset& data,
                int64_t batch_size);
  /// Runs a step; returns its milliseconds, without reading the batch from the data.
  double step();
  const ModelHandle& model() const { return model_; }

 private:
  ModelHandle model_;
  LayoutMap layouts_;
  Batches batches_;
};

/// Times such steps.
TimedWork stepping(const std::shared_ptr<TrainingSteps>& steps);

}  // namespace tessera::bench
