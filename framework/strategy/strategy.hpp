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

/// While alive, a strategy is the current one of this thread: variables are made and models
/// compiled where it says.
class StrategyScope {
 public:
  /// Throws StateError inside another strategy's scope.
  explicit StrategyScope(const strategy::Strategy& strategy);
  virtual ~StrategyScope() = default;

 private:
  ScopedValue<const strategy::Strategy*> strategy_;
  std::optional<DefaultMeshScope> mesh_;  ///< none for a strategy that changes nothing
};

}  // namespace tessera::detail

namespace tessera::strategy {

/// How values of several replicas become one (tf.distribute.ReduceOp).
enum class ReduceOp : uint8_t { sum, mean };

/// Base of all strategies (tf.distribute.Strategy): what a training that is written for one device
/// does on several.
///
///     MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1"}});
///     {
///       const auto scope = strategy.scope();
///       model.compile({.optimizer = "sgd", .loss = "mse"});
///     }
///     model.fit(data, {.batch_size = 2 * strategy.num_replicas_in_sync()});
///
/// A replica is a device along the dimension "batch" of mesh(). What differs from tf.distribute:
/// run() calls its function once, on global values, not once for each replica, so that means over a
/// batch, its normalisation (batch normalisation is synchronised) and a short last batch are exact.
/// A value of each replica is a DTensor that is cut or pending over "batch".
class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// tf.distribute's class name, "MirroredStrategy".
  const std::string& name() const { return name_; }
  /// The devices that it computes on; dimension "batch" counts the replicas.
  Mesh mesh() const;
  /// The layouts of models compiled in scope(): weights replicated, or on one device; batches cut
  /// over "batch".
  LayoutMap layouts() const;
  int64_t num_replicas_in_sync() const;

  /// Makes it the current strategy while the scope lives, which the strategy must outlive.
  [[nodiscard]] virtual std::unique_ptr<detail::StrategyScope> scope() const;

  /// Calls a function in scope(), once, with arguments as they are, and returns what it returns.
  template <class Function, class... Args>
  auto run(Function&& function, Args&&... args) const {
    const auto inside = scope();
    return std::invoke(std::forward<Function>(function), std::forward<Args>(args)...);
  }

  /// The replicas' values as one, complete on every process. Without `axis`: of a value whose axis
  /// 0 is cut over "batch", the sum of its shards, which must be of one size; of any other, which
  /// is the sum of what replicas add to it, that sum itself. `mean` divides by
  /// num_replicas_in_sync().
  /// With `axis`, the sum or mean of all elements along it, over all replicas. Recorded on tapes.
  /// Collective. Throws ShapeError for an axis that it lacks or shards of several sizes.
  DTensor reduce(ReduceOp op, const DTensor& value,
                 std::optional<int64_t> axis = std::nullopt) const;
  /// reduce() by tf.distribute's name, "SUM" or "MEAN". Throws ConfigError for another one.
  DTensor reduce(const std::string& op, const DTensor& value,
                 std::optional<int64_t> axis = std::nullopt) const;
  /// reduce() of a number that is the same on all replicas: that number.
  double reduce(const std::string& op, double value) const;
  /// What replicas hold of a value along `axis`, joined; on the host of every process. Collective.
  /// Throws ShapeError for an axis that it lacks, LayoutError unless it is cut over replicas there
  /// or there is one replica.
  at::Tensor gather(const DTensor& value, int64_t axis) const;
  /// What each replica of this process holds, on the host: its shard; of a value that is complete
  /// or pending, the value. Collective for a pending one.
  std::vector<at::Tensor> experimental_local_results(const DTensor& value) const;

  /// Global batches of the data, cut over the replicas: each process reads the rows of its own.
  DistributedDataset experimental_distribute_dataset(const DatasetHandle& data,
                                                     const DistributeOptions& options = {}) const;
  /// Batches of data that each process makes for itself: `function` is called once on each, and
  /// what it returns holds the batches of single replicas. A global batch joins those of all
  /// replicas; an epoch ends, with a warning, where the data of a first process do. Collective, as
  /// are its batches: rows that replicas lack are fetched from other processes. These throw, on
  /// every process, ShapeError where tensors differ in more than their rows.
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& function,
                                                       const DistributeOptions& options = {}) const;
  /// Rows in memory as data (tf.distribute's experimental_make_numpy_dataset).
  DatasetHandle experimental_make_tensor_dataset(const Examples& all) const { return all; }

 protected:
  /// Variables rest where the mesh's WeightPlacement says. An undefined mesh: the default one, and
  /// scope() changes nothing.
  Strategy(std::string name, const Mesh& mesh);

 private:
  friend class detail::StrategyScope;
  std::string name_;
  Mesh mesh_;
};

/// The strategy outside of all scopes: its scope() and run() change nothing.
const Strategy& default_strategy();
/// The strategy of this thread's scope, else the default one.
const Strategy& get_strategy();
/// Whether there is another one than the default.
bool has_strategy();

/// Sum of losses of single examples, times their weights, divided by the rows of the global batch
/// (tf.nn.compute_average_loss); 0-d. `global_batch_size`: by default the rows there are, so that a
/// short batch is exact.
DTensor compute_average_loss(const DTensor& per_example_loss, const DTensor& sample_weight = {},
                             std::optional<int64_t> global_batch_size = std::nullopt);
/// Sum of regularization losses (tf.nn.scale_regularization_loss). Not divided by the number of
/// replicas as there: a function that runs once adds them once.
DTensor scale_regularization_loss(const DTensor& loss);
DTensor scale_regularization_loss(const std::vector<DTensor>& losses);

}  // namespace tessera::strategy
