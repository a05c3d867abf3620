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

/// Argument or result of a closure: JSON and host tensors, at most 64 MiB together.
struct ClosureValue {
  Json json = nullptr;
  std::vector<at::Tensor> tensors = {};
};

/// Context of a function that runs on a worker. Before it runs, the strategy's variables are
/// updated to the servers' present values. Optimizer::apply() on them sends the gradients to the
/// servers; values that the function assigns directly are sent as differences when it returns.
class WorkerContext {
 public:
  virtual ~WorkerContext() = default;
  /// Return the index of this worker, and the number of workers of the cluster.
  virtual int worker() const = 0;
  virtual int workers() const = 0;
  /// Returns the number of the closure among all closures, from 1; unchanged when it is run again.
  virtual int64_t closure() const = 0;
  virtual const ClosureValue& arguments() const = 0;
  /// Returns the next batch of the closure's `index`-th per-worker dataset, sharded over this
  /// worker's replicas; nullopt after the last batch of a dataset that does not repeat.
  virtual std::optional<Batch> next(size_t index = 0) = 0;
  /// Updates the variables to the servers' present values.
  virtual void pull() = 0;
};

}  // namespace tessera::strategy

namespace tessera {

/// A function that workers run, registered by name on all tasks.
using ClosureFunction = std::function<strategy::ClosureValue(strategy::WorkerContext&)>;

}  // namespace tessera

namespace tessera::strategy {

/// How a worker reads its dataset.
struct PerWorkerOptions {
  int64_t batch_size = 32;  ///< rows per worker batch; ignored for a stream, which yields batches
  bool shuffle = true;      ///< whether to shuffle, differently per worker and per pass
  bool repeat = true;       ///< whether to start again after the last batch
};

/// A dataset that every worker creates for itself (coordinator.create_per_worker_dataset).
struct PerWorkerDataset {
  std::string name;
  int64_t iteration = 0;
};

}  // namespace tessera::strategy
