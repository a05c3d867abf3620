#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/strategy/distributed_dataset.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::strategy {
class Strategy;
}

namespace tessera::detail {

/// Makes a strategy the current one of this thread: variables are created and models compiled on
/// its mesh.
class StrategyScope {
 public:
  /// Throws StateError inside another strategy's scope.
  explicit StrategyScope(const strategy::Strategy& strategy);
  virtual ~StrategyScope() = default;

 private:
  ScopedValue<const strategy::Strategy*> strategy_;
  std::optional<DefaultMeshScope> mesh_;  ///< empty for the default strategy
};

}  // namespace tessera::detail

namespace tessera::strategy {

/// Reduction of the values of several replicas (tf.distribute.ReduceOp).
enum class ReduceOp : uint8_t { sum, mean };

/// Base class of all strategies (tf.distribute.Strategy), which run training code written for one
/// device on several.
///
///     MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1"}});
///     {
///       const auto scope = strategy.scope();
///       model.compile({.optimizer = "sgd", .loss = "mse"});
///     }
///     model.fit(data, {.batch_size = 2 * strategy.num_replicas_in_sync()});
///
/// A replica is a device along the dimension "batch" of mesh(). Unlike tf.distribute, run() calls
/// its function once, on global values, not once per replica, so that means over a batch, batch
/// normalization (which is synchronized) and a short last batch are exact. A per-replica value is a
/// DTensor that is sharded over "batch".
class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// Returns tf.distribute's class name, such as "MirroredStrategy".
  const std::string& name() const { return name_; }
  /// Returns the mesh of the compute devices; its dimension "batch" counts the replicas.
  Mesh mesh() const;
  /// Returns the layouts of models compiled in scope(): weights replicated, or stored on one
  /// device; batches sharded over "batch".
  LayoutMap layouts() const;
  int64_t num_replicas_in_sync() const;
  /// Returns name, mesh and the devices of this process, as tf.distribute prints them: "Using
  /// MirroredStrategy with devices (cpu:0, cpu:1)".
  std::string describe() const;

  /// Makes this the current strategy while the returned scope exists. The strategy must outlive it.
  [[nodiscard]] virtual std::unique_ptr<detail::StrategyScope> scope() const;

  /// Calls a function once, in scope(), with unchanged arguments, and returns its result.
  template <class Function, class... Args>
  auto run(Function&& function, Args&&... args) const {
    const auto inside = scope();
    return std::invoke(std::forward<Function>(function), std::forward<Args>(args)...);
  }

  /// Reduces the replicas' values to one that is replicated on all devices.
  /// Without `axis`: if axis 0 is sharded over "batch", returns the sum or mean of the shards,
  /// which must have equal sizes. Any other value, such as the mean loss of a global batch, is one
  /// that all replicas share: both `sum` and `mean` return it, with partial sums resolved. With
  /// `axis`: returns the sum or mean of all elements along it, over all replicas. Recorded on
  /// tapes. Collective. Throws ShapeError for an axis out of range or shards of different sizes.
  DTensor reduce(ReduceOp op, const DTensor& value,
                 std::optional<int64_t> axis = std::nullopt) const;
  /// Like reduce() above, with tf.distribute's name of the operation, "SUM" or "MEAN". Throws
  /// ConfigError for an unknown name.
  DTensor reduce(const std::string& op, const DTensor& value,
                 std::optional<int64_t> axis = std::nullopt) const;
  /// Returns `value`, which is the same on all replicas. Throws ConfigError for an unknown name.
  double reduce(const std::string& op, double value) const;
  /// Concatenates the replicas' shards along `axis`, on the host of every process. Collective.
  /// Throws ShapeError for an axis out of range, LayoutError if there are several replicas and
  /// `axis` is not sharded over them.
  at::Tensor gather(const DTensor& value, int64_t axis) const;
  /// Returns what each replica of this process holds, on the host: its shard, or the full value if
  /// it is replicated or a partial sum. Collective for a partial sum.
  std::vector<at::Tensor> experimental_local_results(const DTensor& value) const;

  /// Returns global batches of the data, sharded over the replicas: each process reads the rows of
  /// its own replicas.
  DistributedDataset experimental_distribute_dataset(const DatasetHandle& data,
                                                     const DistributeOptions& options = {}) const;
  /// Returns global batches of data that each process creates: `function` is called once per
  /// process and returns a dataset of per-replica batches. A global batch joins those of all
  /// replicas. An epoch ends, with a warning, as soon as the data of one process end. Collective,
  /// as is iterating: rows that replicas lack are fetched from other processes. The batches throw
  /// ShapeError, on every process, if tensors differ in more than their rows.
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& function,
                                                       const DistributeOptions& options = {}) const;
  /// Makes a dataset of rows in memory (tf.distribute's experimental_make_numpy_dataset).
  DatasetHandle experimental_make_tensor_dataset(const Examples& all) const { return all; }

 protected:
  /// Variables are stored as the mesh's WeightPlacement determines. If `mesh` is undefined, the
  /// default mesh is used and scope() changes nothing.
  Strategy(std::string name, const Mesh& mesh);

 private:
  friend class detail::StrategyScope;
  std::string name_;
  Mesh mesh_;
};

/// Returns the strategy outside of all scopes, whose scope() and run() change nothing.
const Strategy& default_strategy();
/// Returns the strategy of this thread's innermost scope, or the default strategy.
const Strategy& get_strategy();
/// Returns whether this thread is in the scope of a strategy other than the default one.
bool has_strategy();

/// Returns the sum of per-example losses times their weights, divided by the rows of the global
/// batch (tf.nn.compute_average_loss); 0-d. Weights (n,) of losses (n, t) weight the rows.
/// `global_batch_size` defaults to the actual number of rows, so that a short batch is exact.
/// Throws ShapeError for weights that do not fit.
DTensor compute_average_loss(const DTensor& per_example_loss, const DTensor& sample_weight = {},
                             std::optional<int64_t> global_batch_size = std::nullopt);
/// Returns the sum of regularization losses (tf.nn.scale_regularization_loss). Unlike TensorFlow,
/// it is not divided by the number of replicas: run() calls its function once, which adds them
/// once.
DTensor scale_regularization_loss(const DTensor& loss);
DTensor scale_regularization_loss(const std::vector<DTensor>& losses);

}  // namespace tessera::strategy
