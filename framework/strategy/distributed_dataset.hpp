#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera::strategy {

/// The part of the input that a process provides (tf.distribute.InputContext).
struct InputContext {
  int num_input_pipelines = 1;  ///< number of processes that read data
  int input_pipeline_id = 0;    ///< index of this process among them
  int64_t num_replicas_in_sync = 1;
  /// Throws ConfigError if the batch size is not divisible by the number of replicas.
  int64_t get_per_replica_batch_size(int64_t global_batch_size) const;
};

/// Creates the dataset of one process.
using DatasetFunction = std::function<DatasetHandle(const InputContext&)>;

/// The options of distributed datasets.
struct DistributeOptions {
  /// Rows of a global batch; in distribute_datasets_from_function, rows of a replica's batch.
  /// Ignored for streams, which are batched already.
  int64_t batch_size = 32;
  bool shuffle = false;  ///< whether to shuffle the rows anew in each epoch
  Seed seed = {};        ///< seed of the orders, together with the epoch's number
};

/// A dataset as batches that are sharded over the replicas of a strategy
/// (tf.distribute.DistributedDataset):
///
///     for (const Batch& batch : batches) mirrored.run(train_step, batch);
///
/// Each range-for loop and each iterate() starts a new epoch, with a new order if shuffled. Copies
/// share the epoch counter.
class DistributedDataset {
 public:
  /// The batches of an epoch, in order; next() returns nothing after the last. Collective if
  /// processes create their own datasets.
  class Batches {
   public:
    virtual ~Batches() = default;
    virtual std::optional<Batch> next() = 0;
  };

  class Iterator {
   public:
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_ = batches_->next();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    friend class DistributedDataset;
    explicit Iterator(std::shared_ptr<Batches> batches)
        : batches_(std::move(batches)), batch_(batches_->next()) {}
    std::shared_ptr<Batches> batches_;
    std::optional<Batch> batch_;
  };

  /// Returns the batches of an epoch, counted from 0.
  using Start = std::function<std::shared_ptr<Batches>(int64_t epoch)>;
  explicit DistributedDataset(Start start);

  Iterator begin() const { return Iterator(iterate()); }
  std::default_sentinel_t end() const { return {}; }
  std::shared_ptr<Batches> iterate() const { return start_((*epochs_)++); }

 private:
  Start start_;
  std::shared_ptr<int64_t> epochs_;
};

}  // namespace tessera::strategy
