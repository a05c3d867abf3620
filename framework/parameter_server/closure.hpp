#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/strategy/distributed_dataset.hpp>

namespace tessera::strategy {

/// What goes to a closure and comes back: numbers and texts as JSON, and tensors on the host. At
/// most 64 MB together.
struct ClosureValue {
  Json json = nullptr;
  std::vector<at::Tensor> tensors = {};
};

/// What a function finds on the worker that runs it. Before it runs, the variables of the
/// strategy hold the servers' present values; Optimizer::apply() on them sends the gradients there,
/// and what the function assigns to variables by itself is sent, as a difference, when it returns.
class WorkerContext {
 public:
  virtual ~WorkerContext() = default;
  /// Index of this worker, and how many the cluster has.
  virtual int worker() const = 0;
  virtual int workers() const = 0;
  /// Number of the closure, from 1: of all closures, and the same if it is run again.
  virtual int64_t closure() const = 0;
  virtual const ClosureValue& arguments() const = 0;
  /// The next batch of the closure's `index`-th per-worker dataset, cut over this worker's
  /// replicas; nothing after the last of data that do not repeat.
  virtual std::optional<Batch> next(size_t index = 0) = 0;
  /// Brings the variables to the servers' present values again.
  virtual void pull() = 0;
};

}  // namespace tessera::strategy

namespace tessera::detail {

/// What runs on a worker, known there and to the coordinator by its name.
using ClosureFunction = std::function<strategy::ClosureValue(strategy::WorkerContext&)>;

}  // namespace tessera::detail

namespace tessera::strategy {

/// How a worker goes through its own dataset.
struct PerWorkerOptions {
  int64_t batch_size = 32;  ///< rows of a worker's batch; a stream has batches of its own
  bool shuffle = true;      ///< each worker and each pass in an order of its own
  bool repeat = true;       ///< begin again after the last batch
};

/// A dataset of which every worker makes its own (coordinator.create_per_worker_dataset).
struct PerWorkerDataset {
  std::string name;
  int64_t iteration = 0;
};

}  // namespace tessera::strategy
